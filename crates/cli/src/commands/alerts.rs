//! `servo alerts`

use crate::args::AlertsArgs;
use crate::failure::Failure;
use crate::run::Session;

pub(crate) async fn run(session: &Session, args: &AlertsArgs) -> Result<u8, Failure> {
    session.show(&args.watch, async || session.client.alerts(Some(args.limit)).await).await
}
