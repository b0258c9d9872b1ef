//! `servo whoami`

use crate::args::Global;
use crate::failure::{Failure, exit};
use crate::run::{interruptible, session};
use crate::settings::Settings;
use crate::view::{Caller, Origins, origins};

pub(crate) async fn run(global: &Global) -> Result<u8, Failure> {
    let settings = Settings::of(global)?;
    let session = session(global)?;
    let answer = interruptible(async { Ok(session.client.whoami().await?) }).await;
    // Where the settings came from is most wanted when they led nowhere.
    let who = answer.inspect_err(|_| session.out.note(origins(&settings).trim_end()))?;
    let caller = Caller { who: &who, settings: &settings };
    // The server's own document, and beside it what only this program knows.
    let origins = serde_json::to_string(&Origins::of(&settings)).unwrap_or_default();
    let document = who.raw().trim_end();
    let raw = match document.strip_suffix('}') {
        Some(open) => format!("{open},\"settings\":{origins}}}"),
        None => document.to_owned(),
    };
    session.out.data(&caller, &raw)?;
    Ok(exit::OK)
}
