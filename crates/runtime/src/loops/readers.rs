//! Watches how far readers of the log are held back. On Postgres they read below every open transaction, so one that is
//! forgotten hides everything that was recorded since it began: no projection, no publication, and no error either.
//!
//! It only tells. Ending somebody's transaction is for people.

use std::time::Duration;

use servo_model::TenantId;
use servo_model::alert::AlertCode;
use servo_store::relay::NewAlert;
use tokio::sync::Notify;

use super::authority::Authority;
use crate::engine::Engine;

const SUBJECT: &str = "log";
/// The store's setting that says it. Stores whose readers see every commit at once do not have it.
const AGE: &str = "xmin_age_ms";
/// Looking costs the database a little, and an alert may be a little late.
const EVERY_MAX: Duration = Duration::from_secs(15);
const EVERY_MIN: Duration = Duration::from_millis(10);

pub(crate) async fn run(engine: Engine, authority: Authority) {
    let limit = Duration::from_millis(engine.config().readers_held_back_ms);
    let every = (limit / 4).clamp(EVERY_MIN, EVERY_MAX);
    let never = Notify::new();
    // Whether the alert stands. Unknown at first: an earlier process may have raised it.
    let mut held_back = None;
    while super::pause(engine.clock().as_ref(), engine.shutdown(), &never, every).await {
        if authority.fence(engine.clock().elapsed()).is_none() {
            held_back = None;
            continue;
        }
        match look(&engine, limit, held_back).await {
            Ok(Some(now)) => held_back = Some(now),
            Ok(None) => return,
            Err(error) => tracing::debug!(%error, "not known whether readers of the log are held back"),
        }
    }
}

/// Raises or withdraws the alert where that changes something. `None` if this store cannot hold readers back.
async fn look(engine: &Engine, limit: Duration, before: Option<bool>) -> Result<Option<bool>, servo_store::Error> {
    let settings = engine.store().info().await?.settings;
    let age = settings.iter().find(|(name, _)| name == AGE).and_then(|(_, age)| age.parse().ok());
    let Some(age) = age.map(Duration::from_millis) else { return Ok(None) };
    let (code, tenant) = (AlertCode::LogReadersHeldBack, TenantId::system());
    let now = age > limit;
    if now && before != Some(true) {
        let message = format!("an open transaction has held back readers of the log for {} ms", age.as_millis());
        tracing::warn!(message);
        crate::metrics::alert(code);
        let subject = SUBJECT.to_owned();
        engine.store().raise_alert(NewAlert { code, subject, run_id: None, tenant, message }).await?;
    } else if !now && before != Some(false) {
        engine.store().clear_alert(code, &tenant, SUBJECT).await?;
    }
    Ok(Some(now))
}
