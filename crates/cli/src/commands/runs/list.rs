//! Listing runs: one page, or all of them.

use serde_json::value::RawValue;
use servo_client::RunFilter;
use servo_wire::v1::RunList;

use crate::args::ListArgs;
use crate::failure::{Failure, exit};
use crate::output::json;
use crate::run::{Session, interruptible};

pub(super) async fn list(session: &Session, args: ListArgs) -> Result<u8, Failure> {
    let mut filter = RunFilter {
        id: None,
        status: args.status.map(|status| status.to_lowercase()),
        plan_id: args.plan,
        limit: Some(args.limit),
        cursor: args.cursor,
    };
    if !args.all {
        return session.show(&args.watch, async || session.client.list_runs(&filter).await).await;
    }
    interruptible(async {
        let page = session.client.list_runs(&filter).await?;
        let mut raws: Vec<Box<RawValue>> = json::items(page.raw(), "items")?;
        let mut whole = RunList { next_cursor: None, ..(*page).clone() };
        filter.cursor.clone_from(&page.next_cursor);
        while filter.cursor.is_some() {
            let page = session.client.list_runs(&filter).await?;
            raws.extend(json::items(page.raw(), "items")?);
            filter.cursor.clone_from(&page.next_cursor);
            whole.items.extend(page.into_value().items);
        }
        let items: Vec<_> = raws.iter().map(|raw| raw.get()).collect();
        session.out.data(&whole, &format!("{{\"items\":[{}]}}", items.join(",")))?;
        Ok(exit::OK)
    })
    .await
}
