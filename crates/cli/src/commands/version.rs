//! `servo version`

use servo_wire::v1::Version;

use crate::args::Global;
use crate::failure::{Failure, exit};
use crate::output::Out;
use crate::run::{interruptible, session};
use crate::settings::Settings;
use crate::view::VersionReport;

pub(crate) async fn run(global: &Global) -> Result<u8, Failure> {
    let client = Version { name: "servo".to_owned(), version: env!("CARGO_PKG_VERSION").to_owned() };
    let server = if Settings::of(global)?.names_a_server() {
        let session = session(global)?;
        Some(interruptible(async { Ok(session.client.version().await?) }).await?.into_value())
    } else {
        None
    };
    Out::new(global).print(&VersionReport { client, server })?;
    Ok(exit::OK)
}
