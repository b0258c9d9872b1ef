//! Verification: folds every run and compares the result with its row and its timer.

use serde::Serialize;
use servo_model::RunId;
use servo_store::resync::load_state;
use servo_store::runs::RunQuery;
use servo_store::{Scope, Store};

#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    pub runs: u64,
    pub events: u64,
    pub findings: Vec<Finding>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    pub run_id: RunId,
    pub problem: String,
}

/// Goes through every run. `progress` is called now and then with the number of runs done.
pub async fn verify(store: &dyn Store, mut progress: impl FnMut(u64) + Send) -> Result<Report, servo_store::Error> {
    let mut report = Report::default();
    let mut query = RunQuery { limit: 500, ..RunQuery::default() };
    let now = store.now().await?;
    loop {
        let rows = store.list_runs(&Scope::System, &query).await?;
        let Some(last) = rows.last() else { return Ok(report) };
        query.after = Some(last.run_id.clone());
        for row in rows {
            report.runs += 1;
            let mut found = |problem: String| report.findings.push(Finding { run_id: row.run_id.clone(), problem });
            if let Some(reason) = &row.quarantined {
                found(format!("set aside: {reason}"));
                continue;
            }
            let state = match load_state(store, &Scope::System, &row.run_id).await {
                Ok(state) => state,
                // Removed while we looked.
                Err(servo_store::Error::NotFound) => continue,
                Err(servo_store::Error::Corrupt { detail }) => {
                    found(detail);
                    continue;
                }
                Err(error) => return Err(error),
            };
            // Read again: the run may have moved between the list and the fold.
            let Some(row) = store.get_run(&Scope::System, &row.run_id).await? else { continue };
            if row.changed_seq <= state.last_event_seq
                && let Some(what) = row.disagreement(&state)
            {
                let (row_says, events_say) = (row.status.as_str(), state.status.as_str());
                let visible = row.visible.as_str();
                found(format!("the row says {row_says} ({visible}), the events say {events_say}: its {what} differs"));
            }
            let timer = store.get_timer(&row.run_id).await?;
            if state.next_due(now).is_some() && timer.is_none() {
                found("a timer is due some day, but no timer row is there".to_owned());
            }
            report.events += state.last_event_seq;
        }
        progress(report.runs);
    }
}
