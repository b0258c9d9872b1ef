//! `servo whoami`

use crate::failure::{Failure, exit};
use crate::run::{Session, interruptible};

pub(crate) async fn run(session: &Session) -> Result<u8, Failure> {
    interruptible(async {
        let caller = session.client.whoami().await?;
        session.out.data(&*caller, caller.raw())?;
        Ok(exit::OK)
    })
    .await
}
