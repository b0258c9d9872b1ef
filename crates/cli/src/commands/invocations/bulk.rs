//! One action on all invocations that a filter finds, in calls of a size that shows how it goes on.

use servo_client::BulkRequest;
use servo_entrypoint::{BulkOutcome, InvocationControlAction as Action, Page};

use crate::args::BulkArgs;
use crate::failure::{Failure, exit};
use crate::output::json;
use crate::output::progress::Progress;
use crate::run::{Session, interruptible};

/// Invocations per call when nobody asked for a rate.
const CALL: u32 = 100;
/// With a rate, a call takes about this long.
const CALL_SECONDS: u32 = 2;

pub(super) async fn run(session: &Session, args: BulkArgs) -> Result<u8, Failure> {
    let action = match args.action.as_str() {
        "cancel" => Action::Cancel,
        "suspend" => Action::Suspend,
        "resume" => Action::Resume,
        "retry" => Action::Retry,
        _ => Action::Replay,
    };
    let call = args.per_second.map_or(CALL, |rate| rate.saturating_mul(CALL_SECONDS)).min(CALL);
    let mut left = if args.all { u32::MAX } else { args.max_items };
    let mut progress = Progress::new(action.as_str(), if left <= call { Some(1) } else { None });
    let mut request = BulkRequest {
        action,
        filter: args.filter,
        max_items: None,
        per_second: args.per_second,
        dry_run: args.dry_run,
        cursor: args.cursor,
    };
    let (mut whole, mut raws) = (Page::<BulkOutcome> { items: Vec::new(), page_info: Default::default() }, Vec::new());
    let calls = async {
        loop {
            request.max_items = Some(call.min(left));
            let page = session.client.bulk_control(&request).await?;
            raws.extend(json::items(page.raw(), "items")?);
            left = left.saturating_sub(u32::try_from(page.items.len()).unwrap_or(u32::MAX));
            progress.advance(page.items.len() as u64);
            let page = page.into_value();
            whole.items.extend(page.items);
            whole.page_info = page.page_info;
            request.cursor.clone_from(&whole.page_info.next_cursor);
            if request.cursor.is_none() || left == 0 {
                return Ok(());
            }
        }
    };
    let ended = interruptible(calls).await;
    drop(progress);
    // What was done was done, also if the next call failed.
    let items: Vec<_> = raws.iter().map(|raw| raw.get()).collect();
    let page_info = serde_json::to_string(&whole.page_info).unwrap_or_default();
    session.out.data(&whole, &format!("{{\"items\":[{}],\"page_info\":{page_info}}}", items.join(",")))?;
    if let Some(cursor) = &whole.page_info.next_cursor {
        session.out.note(&format!("there are more: --all, or the command again with --cursor {cursor}"));
    }
    ended?;
    let refused = whole.items.iter().any(|outcome| outcome.error.is_some());
    Ok(if refused { exit::CONFLICT } else { exit::OK })
}
