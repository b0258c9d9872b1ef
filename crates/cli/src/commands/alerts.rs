//! `servo alerts`

use crate::args::AlertsArgs;
use crate::failure::{Failure, exit};
use crate::run::{Session, interruptible};

pub(crate) async fn run(session: &Session, args: &AlertsArgs) -> Result<u8, Failure> {
    interruptible(async {
        let alerts = session.client.alerts(Some(args.limit)).await?;
        session.out.data(&*alerts, alerts.raw())?;
        Ok(exit::OK)
    })
    .await
}
