//! Parameters of path and query: each is checked by name, and one that no handler asked for is refused.

use axum::extract::{FromRequestParts, Path, Query};
use axum::http::request::Parts;
use servo_model::limits::{PAGE_SIZE_DEFAULT, PAGE_SIZE_MAX};
use servo_model::{RunId, SecurityContext};

use crate::app::App;
use crate::error::{Answer, ApiError};

/// The query, taken apart name by name.
#[derive(Debug)]
pub(crate) struct Params(Vec<(String, String)>);

impl FromRequestParts<App> for Params {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _app: &App) -> Result<Self, ApiError> {
        let unreadable = |_| ApiError::parameter("query", "cannot be read");
        Query::<Vec<(String, String)>>::try_from_uri(&parts.uri).map(|Query(pairs)| Self(pairs)).map_err(unreadable)
    }
}

impl Params {
    /// The parameter's value, if it is there and fits.
    pub(crate) fn take<T>(&mut self, name: &str, parse: impl FnOnce(&str) -> Result<T, String>) -> Answer<Option<T>> {
        let Some(index) = self.0.iter().position(|(known, _)| known == name) else { return Ok(None) };
        let (_, value) = self.0.swap_remove(index);
        if self.0.iter().any(|(known, _)| known == name) {
            return Err(ApiError::parameter(name, "stands twice"));
        }
        parse(&value).map(Some).map_err(|reason| ApiError::parameter(name, &reason))
    }

    pub(crate) fn number(&mut self, name: &str) -> Answer<Option<u64>> {
        self.take(name, |text| text.parse().map_err(|_| "is a whole number from 0 up".to_owned()))
    }

    /// How many items a page has.
    pub(crate) fn limit(&mut self) -> Answer<u32> {
        let limit = self.take("limit", |text| match text.parse() {
            Ok(limit) if (1..=PAGE_SIZE_MAX).contains(&limit) => Ok(limit),
            _ => Err(format!("is a whole number from 1 to {PAGE_SIZE_MAX}")),
        })?;
        Ok(limit.unwrap_or(PAGE_SIZE_DEFAULT))
    }

    /// Refuses what is left: a misspelt filter must not be answered with the unfiltered list.
    pub(crate) fn done(self) -> Answer<()> {
        match self.0.first() {
            Some((name, _)) => Err(ApiError::parameter(name, "is no parameter of this address")),
            None => Ok(()),
        }
    }
}

/// The run that a path names. Handlers get it through `seen` alone, so that none forgets to ask.
#[derive(Debug)]
pub(crate) struct RunPath(RunId);

impl RunPath {
    /// The run, unless it is kept from the caller: then it is answered like one that is not there.
    pub(crate) async fn seen(self, app: &App, caller: &SecurityContext) -> Answer<RunId> {
        if app.sight.hides(caller, &self.0).await? {
            return Err(servo_store::Error::NotFound.into());
        }
        Ok(self.0)
    }
}

impl FromRequestParts<App> for RunPath {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, ApiError> {
        let path = Path::<String>::from_request_parts(parts, app).await;
        let Path(text) = path.map_err(|_| ApiError::parameter("runId", "is not UTF-8"))?;
        RunId::parse(&text).map(Self).map_err(|invalid| ApiError::parameter("runId", &invalid.reason))
    }
}
