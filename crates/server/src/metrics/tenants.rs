//! Invocations by tenant and entrypoint. Unlike the other metrics these are no state of the process: each scrape gets those that its
//! caller sees, so that no tenant reads of another, and nothing stays behind as a label.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use servo_model::{Permission, SecurityContext, TenantId};

use crate::app::App;
use crate::series::{Counts, smaller};

/// Entrypoints of a tenant with a label of their own: the newest that have runs. The rest is added up.
const ENTRYPOINTS_MAX: usize = 50;
/// Entrypoints that are looked at for these.
const LOOKED_AT_MAX: usize = 500;
const OTHERS: &str = "others";
/// How long a scrape waits for all of this. Prometheus gives up after ten seconds, and would lose the other metrics as well.
const PATIENCE: Duration = Duration::from_secs(4);

/// The samples, and whether they had to be left out: a count that is missing is not to be taken for none.
pub(super) async fn render(app: &App, caller: &SecurityContext) -> String {
    let told = tokio::select! {
        biased;
        told = samples(app, caller) => told.map_err(|error| error.to_string()),
        () = app.runtime.engine().clock().sleep(PATIENCE) => Err("it took too long".to_owned()),
    };
    let is_left_out = u8::from(told.is_err());
    let mut text = told.unwrap_or_else(|error| {
        tracing::warn!(error, "the invocations of tenants could not be counted");
        String::new()
    });
    let _ = write!(
        text,
        "# HELP servo_invocations_left_out 1 when the store did not count servo_invocations in time\n\
         # TYPE servo_invocations_left_out gauge\n\
         servo_invocations_left_out {is_left_out}\n",
    );
    text
}

/// One sample per tenant, entrypoint and status in which there is something.
async fn samples(app: &App, caller: &SecurityContext) -> Result<String, servo_store::Error> {
    let mut tenants = vec![caller.tenant.clone()];
    if caller.may(Permission::Platform) {
        // Those that are followed for charts, of which there are few.
        tenants.extend(app.samples.tenants().into_iter().filter(|tenant| *tenant != caller.tenant));
    }
    let mut text = String::from(
        "# HELP servo_invocations invocations that the caller sees, by tenant, entrypoint and status\n\
         # TYPE servo_invocations gauge\n",
    );
    for tenant in tenants {
        for (entrypoint, counts) in counts(app, caller, &tenant).await? {
            for (status, count) in counts {
                let (tenant, entrypoint, status) = (tenant.as_str(), escaped(&entrypoint), status.as_str());
                let labels = format!("tenant=\"{tenant}\",entrypoint=\"{entrypoint}\",status=\"{status}\"");
                let _ = writeln!(text, "servo_invocations{{{labels}}} {count}");
            }
        }
    }
    Ok(text)
}

/// By the entrypoints' addresses.
async fn counts(
    app: &App,
    caller: &SecurityContext,
    tenant: &TenantId,
) -> Result<Vec<(String, Counts)>, servo_store::Error> {
    let store = app.runtime.engine().store();
    let mut total = store.count_by_visible(tenant, None).await?;
    let mut hidden = Vec::new();
    for id in app.sight.hidden(caller).await?.ids() {
        hidden.extend(store.count_by_visible(tenant, Some(id)).await?);
    }
    if !hidden.is_empty() {
        total = smaller(&total, &store.count_by_visible(tenant, None).await?);
    }
    let mut all: BTreeMap<_, _> = total.into_iter().collect();
    let mut take = |counts: &Counts| {
        for (status, count) in counts {
            all.entry(*status).and_modify(|left| *left = left.saturating_sub(*count));
        }
    };
    take(&hidden);
    let mut told = Vec::new();
    for (id, address) in app.sight.newest(caller, tenant, LOOKED_AT_MAX).await? {
        // What has no label of its own is in the total already: nothing more is to be read of it.
        if told.len() == ENTRYPOINTS_MAX {
            break;
        }
        let counts = store.count_by_visible(tenant, Some(&id)).await?;
        if !counts.is_empty() {
            take(&counts);
            told.push((address, counts));
        }
    }
    let others: Counts = all.into_iter().filter(|(_, count)| *count > 0).collect();
    if !others.is_empty() {
        told.push((OTHERS.to_owned(), others));
    }
    Ok(told)
}

/// As the text format has the value of a label.
fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::escaped;

    #[test]
    fn a_label_ends_where_it_should() {
        assert_eq!(escaped("a\"b\\c\nd"), "a\\\"b\\\\c\\nd");
    }
}
