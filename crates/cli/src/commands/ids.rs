//! Ids that are written in part: their first letters, or the last ones that the live log shows. The server knows which there are.

use servo_client::{Error, RunFilter};
use servo_model::{KeyId, RunId};

use crate::args::Target;
use crate::failure::{Failure, exit};
use crate::input::{self, Chosen};
use crate::run::{Session, interruptible};

/// Letters that may stand for an id. With fewer it is what it says.
const LETTERS_MIN: usize = 4;
/// Keys that one answer holds.
const KEYS_READ: u32 = 1_000;

/// The runs that a command acts on, each by its whole id.
pub(super) async fn choose(session: &Session, targets: &[Target]) -> Result<Chosen, Failure> {
    let Chosen { mut runs, is_single } = input::choose(targets)?;
    for run in &mut runs {
        *run = whole(session, run).await?;
    }
    Ok(Chosen { runs, is_single })
}

/// The one run that is meant, for what cannot be done to several.
pub(super) async fn single(session: &Session, targets: &[Target]) -> Result<RunId, Failure> {
    whole(session, &input::single(targets)?).await
}

/// The id that these letters stand for. Letters that no run has are left as they are: the command itself is refused for them.
pub(super) async fn whole(session: &Session, letters: &RunId) -> Result<RunId, Failure> {
    let own = letters.as_str().strip_prefix("inv_").unwrap_or(letters.as_str());
    if letters.created_at().is_some() || own.len() < LETTERS_MIN {
        return Ok(letters.clone());
    }
    let filter = RunFilter { id: Some(letters.to_string()), ..RunFilter::default() };
    let found = match interruptible(async { Ok(session.client.list_runs(&filter).await) }).await? {
        Ok(found) => found.into_value().items,
        // A server from before knows whole ids only.
        Err(Error::Api { status: 400 | 422, .. }) => return Ok(letters.clone()),
        Err(error) => return Err(error.into()),
    };
    if found.iter().any(|item| item.run_id == *letters) {
        return Ok(letters.clone());
    }
    let told = found.iter().map(|item| format!("{}  {}", item.run_id, item.plan_id)).collect();
    let ids: Vec<_> = found.into_iter().map(|item| item.run_id).collect();
    Ok(one(letters.as_str(), "run", &ids, told)?.unwrap_or_else(|| letters.clone()))
}

/// The key that these letters stand for, of those that the caller may see.
pub(super) async fn key(session: &Session, text: &str) -> Result<KeyId, Failure> {
    let as_it_is = || KeyId::parse(text).map_err(|invalid| Failure::usage(invalid.to_string()));
    if text.strip_prefix("key_").unwrap_or(text).len() < LETTERS_MIN || is_whole(text) {
        return as_it_is();
    }
    let (mut found, mut told, mut after) = (Vec::new(), Vec::new(), None::<String>);
    loop {
        let page = session.client.keys(None, after.as_deref(), Some(KEYS_READ)).await?.into_value();
        for item in page.items {
            let id = item.id.as_str();
            if id == text {
                return Ok(item.id);
            }
            let own = id.strip_prefix("key_").unwrap_or(id);
            if id.starts_with(text) || own.starts_with(text) || id.ends_with(text) {
                told.push(format!("{id}  {}", item.name));
                found.push(item.id);
            }
        }
        after = page.after.map(|after| after.to_string());
        if after.is_none() {
            break;
        }
    }
    match one(text, "key", &found, told)? {
        Some(key) => Ok(key),
        None => as_it_is(),
    }
}

fn is_whole(id: &str) -> bool {
    id.split_once('_').is_some_and(|(_, own)| own.len() == 32 && own.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

/// The one that was found, or a refusal that names all.
fn one<T: Clone>(letters: &str, noun: &str, found: &[T], told: Vec<String>) -> Result<Option<T>, Failure> {
    match found {
        [] => Ok(None),
        [one] => Ok(Some(one.clone())),
        several => {
            let what = format!("`{letters}` is the beginning or the end of {} {noun}s", several.len());
            Err(Failure::new(exit::USAGE, what).lines(told).hint("write more of the id"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_meant_or_all_are_named() {
        let told = |ids: &[&str]| ids.iter().map(|id| (*id).to_owned()).collect::<Vec<_>>();
        assert_eq!(one("c546", "run", &["a"], told(&["a"])).unwrap(), Some("a"));
        assert_eq!(one::<&str>("c546", "run", &[], Vec::new()).unwrap(), None);
        let failure = one("c546", "run", &["inv_1", "inv_2"], told(&["inv_1  p", "inv_2  q"])).unwrap_err();
        assert_eq!(failure.exit, exit::USAGE);
        let text = failure.text(crate::output::style::Paint::new(false));
        assert_eq!(
            text,
            "error: `c546` is the beginning or the end of 2 runs\n       inv_1  p\n       inv_2  q\nnext: write more of the id\n"
        );
    }

    #[test]
    fn a_whole_id_is_known() {
        assert!(is_whole("key_0194f3c2000000000000000000000000"));
        assert!(!is_whole("key_0194f3c2") && !is_whole("c546cb") && !is_whole(&"f".repeat(36)));
    }
}
