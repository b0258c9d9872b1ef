//! Log lines: numbered, bounded, and gone with their run.

use servo_model::RunId;
use servo_model::limits::{LINE_BYTES_MAX, Limits};

use super::Context;
use crate::error::Error;
use crate::lines::{CUT_MARK, LineSource, LogLine};
use crate::log::Expected;
use crate::runs::Scope;
use crate::testkit::fixtures::{add, finished_row, run_id, tenant};

pub(super) fn line(ctx: &Context, text: &str) -> LogLine {
    LogLine { at: ctx.clock.now(), request_id: "r-1".to_owned(), source: LineSource::Stdout, text: text.to_owned() }
}

async fn put(ctx: &Context, run: &RunId, texts: &[&str]) {
    let lines = texts.iter().map(|text| line(ctx, text)).collect();
    ctx.store.put_lines(run, &tenant("acme"), lines).await.unwrap();
}

/// First and last number, and how many bytes.
async fn kept(ctx: &Context, run: &RunId) -> (u64, u64, usize) {
    let lines = ctx.store.read_lines(&Scope::System, run, 0, u32::MAX).await.unwrap();
    let numbers: Vec<_> = lines.iter().map(|(number, _)| *number).collect();
    let (first, last) = (numbers[0], numbers[numbers.len() - 1]);
    assert_eq!(numbers, (first..=last).collect::<Vec<_>>(), "one after another");
    (first, last, lines.iter().map(|(_, line)| line.text.len()).sum())
}

pub(super) async fn lines_come_back_in_order(ctx: &Context) {
    let (run, acme) = ctx.start("inv_1", "acme").await;
    assert_eq!(ctx.store.read_lines(&Scope::System, &run, 0, 10).await.unwrap(), []);
    let lines: Vec<_> = LineSource::ALL
        .into_iter()
        .enumerate()
        .map(|(index, source)| LogLine {
            at: ctx.clock.after(100 - index as u64),
            request_id: format!("r-{index}"),
            source,
            text: format!("line {index}\t\u{1f600}"),
        })
        .collect();
    ctx.store.put_lines(&run, &acme, lines.clone()).await.unwrap();
    ctx.store.put_lines(&run, &acme, Vec::new()).await.unwrap();
    put(ctx, &run, &["", "five"]).await;
    let read = ctx.store.read_lines(&Scope::Tenant(acme), &run, 0, 10).await.unwrap();
    let expected: Vec<_> = (1..).zip(lines.into_iter().chain([line(ctx, ""), line(ctx, "five")])).collect();
    assert_eq!(read, expected);
    assert_eq!(ctx.store.read_lines(&Scope::System, &run, 2, 2).await.unwrap(), expected[2..4]);
    for beyond in [5, u64::MAX] {
        assert_eq!(ctx.store.read_lines(&Scope::System, &run, beyond, 2).await.unwrap(), []);
    }
    assert_eq!(ctx.sequences(&run).await, [1], "lines are no events");
}

pub(super) async fn lines_belong_to_a_run_of_the_tenant(ctx: &Context) {
    let (run, _) = ctx.start("inv_1", "acme").await;
    put(ctx, &run, &["secret"]).await;
    let globex = tenant("globex");
    let none = run_id("inv_none");
    refused!(ctx.store.read_lines(&Scope::Tenant(globex.clone()), &run, 0, 10).await, Error::NotFound);
    refused!(ctx.store.read_lines(&Scope::System, &none, 0, 10).await, Error::NotFound);
    for lines in [Vec::new(), vec![line(ctx, "x")]] {
        refused!(ctx.store.put_lines(&run, &globex, lines.clone()).await, Error::NotFound);
        refused!(ctx.store.put_lines(&none, &globex, lines).await, Error::NotFound);
    }
    assert_eq!(kept(ctx, &run).await, (1, 1, 6));
}

pub(super) async fn the_oldest_lines_leave(ctx: &Context) {
    let (run, _) = ctx.start("inv_1", "acme").await;
    let max = Limits::default().lines_per_run_max;
    let many = vec!["x"; usize::try_from(max).unwrap()];
    put(ctx, &run, &many[..7]).await;
    put(ctx, &run, &many[7..]).await;
    assert_eq!(kept(ctx, &run).await, (1, max, many.len()));
    put(ctx, &run, &["y", "yy"]).await;
    assert_eq!(kept(ctx, &run).await, (3, max + 2, many.len() + 1));
    // More at once than are kept: the first of them have numbers, and nothing more.
    put(ctx, &run, &[&many[..], &["zzz"; 5]].concat()).await;
    assert_eq!(kept(ctx, &run).await, (max + 2 + 6, 2 * max + 2 + 5, many.len() - 5 + 15));
    let last = ctx.store.read_lines(&Scope::System, &run, 2 * max + 6, 10).await.unwrap();
    assert_eq!((last.len(), last[0].0, last[0].1.text.as_str()), (1, 2 * max + 7, "zzz"));
}

pub(super) async fn lines_have_a_size(ctx: &Context) {
    let (run, _) = ctx.start("inv_1", "acme").await;
    let max = Limits::default().lines_bytes_per_run_max;
    let (full, fitting) = ("a".repeat(LINE_BYTES_MAX), max / LINE_BYTES_MAX);
    put(ctx, &run, &["", "first"]).await;
    put(ctx, &run, &vec![full.as_str(); fitting]).await;
    // The empty line has no bytes, but it is older than one that has to leave.
    assert_eq!(kept(ctx, &run).await, (3, fitting as u64 + 2, max));
    put(ctx, &run, &["", "b"]).await;
    assert_eq!(kept(ctx, &run).await, (4, fitting as u64 + 4, max - LINE_BYTES_MAX + 1));
    put(ctx, &run, &vec![full.as_str(); fitting + 3]).await;
    assert_eq!(kept(ctx, &run).await, (fitting as u64 + 8, 2 * fitting as u64 + 7, max));
}

pub(super) async fn a_long_line_is_cut_and_says_so(ctx: &Context) {
    let (run, acme) = ctx.start("inv_1", "acme").await;
    let fits = "a".repeat(LINE_BYTES_MAX);
    put(ctx, &run, &[&fits, &format!("{fits}b"), &"\u{1f600}".repeat(LINE_BYTES_MAX / 4 + 1), "a\0b"]).await;
    let lines = ctx.store.read_lines(&Scope::System, &run, 0, 10).await.unwrap();
    assert!(lines[0].1.text == fits);
    for (_, line) in &lines[1..3] {
        assert!(line.text.ends_with(CUT_MARK) && line.text.len() <= LINE_BYTES_MAX, "{} bytes", line.text.len());
        assert!(line.text.len() > LINE_BYTES_MAX - 4, "no more is lost than must be");
    }
    assert_eq!(lines[3].1.text, "a\u{fffd}b", "what not every store can hold");
    let long = LogLine { request_id: "r".repeat(257), ..line(ctx, "x") };
    refused!(ctx.store.put_lines(&run, &acme, vec![long]).await, Error::Limit { limit: 256, .. });
    let most = Limits::default().transaction_bytes_max;
    let lines = vec![line(ctx, &fits); most / LINE_BYTES_MAX + 1];
    refused!(ctx.store.put_lines(&run, &acme, lines).await, Error::Limit { limit, .. } if limit == most as u64);
}

pub(super) async fn lines_go_with_their_run(ctx: &Context) {
    for run in ["inv_1", "inv_2", "inv_3"] {
        let (run, acme) = ctx.start(run, "acme").await;
        put(ctx, &run, &["one", "two"]).await;
        let mut ended = add(&run, &acme, Expected::Seq(1), Vec::new());
        ended.row = Some(finished_row(&run, &acme, ctx.clock.now()));
        ctx.put(ended).await.unwrap();
        ctx.clock.advance(10);
    }
    ctx.store.delete_run(&Scope::System, &run_id("inv_2")).await.unwrap();
    assert_eq!(ctx.store.retire(ctx.clock.now(), 1).await.unwrap(), 1);
    for gone in ["inv_1", "inv_2"] {
        refused!(ctx.store.read_lines(&Scope::System, &run_id(gone), 0, 10).await, Error::NotFound);
        let (run, _) = ctx.start(gone, "acme").await;
        assert_eq!(ctx.store.read_lines(&Scope::System, &run, 0, 10).await.unwrap(), [], "a new run of that name");
        put(ctx, &run, &["again"]).await;
        assert_eq!(kept(ctx, &run).await, (1, 1, 5));
    }
    assert_eq!(kept(ctx, &run_id("inv_3")).await, (1, 2, 6));
}

pub(super) async fn racing_writers_share_no_number(ctx: &Context) {
    const CALLERS: usize = 4;
    const EACH: usize = 10;
    let (run, _) = ctx.start("inv_1", "acme").await;
    ctx.threads(CALLERS, |ctx, index| {
        Box::pin(async move {
            for number in 0..EACH {
                put(&ctx, &run_id("inv_1"), &[&format!("{index}"), &format!("{index}.{number}")]).await;
            }
        })
    })
    .await;
    assert_eq!(kept(ctx, &run).await.1, 2 * (CALLERS * EACH) as u64);
}

pub(super) async fn lines_outlive_the_process(ctx: &Context) {
    let (run, _) = ctx.start("inv_1", "acme").await;
    put(ctx, &run, &["one", "two"]).await;
    let Some(again) = ctx.reopen().await else { return };
    put(&again, &run, &["three"]).await;
    assert_eq!(kept(&again, &run).await, (1, 3, 11));
    again.store.close().await.unwrap();
}
