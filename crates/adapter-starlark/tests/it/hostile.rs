//! Programs that want too much. Each ends its own call with the limit named; neighbours and this process do not notice.

use std::time::{Duration, Instant};

use serde_json::json;
use servo_adapter::Handlers as _;
use servo_model::TenantId;
use servo_model::function::Code;
use servo_model::invocation::{ErrorCategory, Failure, errors};

use crate::support::{World, call_of, code, plain};

const MEMORY_MB: u64 = 32;
const TIMEOUT: Duration = Duration::from_secs(60);

/// Source and the limits that may end it.
pub(crate) fn corpus() -> Vec<(&'static str, String, &'static [&'static str])> {
    let main = |body: &str| format!("def main(ctx, input):\n{body}\n");
    let memory: &[&str] = &["memory_mb"];
    let cpu: &[&str] = &["cpu_ms"];
    vec![
        ("string doubling", main("    s = 'a'\n    for i in range(60): s = s + s\n    return len(s)"), memory),
        ("list doubling", main("    s = [0]\n    for i in range(60): s = s + s\n    return len(s)"), memory),
        ("huge string", main("    return len('a' * 2000000000)"), memory),
        ("huge list", main("    return len([0] * 500000000)"), memory),
        ("list of a huge range", main("    return len(list(range(2000000000)))"), memory),
        ("dicts", main("    return len({i: {i: i} for i in range(100000000)})"), memory),
        ("giant int", main("    n = 3\n    for i in range(60): n = n * n\n    return n"), &["memory_mb", "cpu_ms"]),
        ("giant shift", main("    return 1 << 2000000000"), &["memory_mb", "cpu_ms", ""]),
        ("join", main("    return len(','.join(['x' * 1000000] * 100000))"), memory),
        ("replace", main("    return len(('a' * 1000000).replace('a', 'b' * 1000000))"), memory),
        ("format", main("    return len('{0}{0}{0}{0}'.format('a' * 20000000))"), memory),
        (
            "repeated repr",
            main("    s = 'a' * 1000\n    for i in range(60): s = repr(s) + repr(s)\n    return len(s)"),
            memory,
        ),
        (
            "sums that leave floats",
            main("    x = 0.5\n    for i in range(20000000): x += 0.1\n    return x"),
            &["memory_mb", "cpu_ms"],
        ),
        (
            "sums beyond what is small",
            main("    x = 3000000000\n    for i in range(20000000): x += 1\n    return x"),
            &["memory_mb", "cpu_ms"],
        ),
        ("endless loop", main("    for i in range(2000000000):\n        for j in range(2000000000): pass"), cpu),
        ("endless work in one call", main("    return sorted([x for x in range(2000000000) if x < 0])"), cpu),
        (
            "endless recursion",
            "def f(n):\n    return f(n + 1)\ndef main(ctx, input):\n    return f(0)\n".to_owned(),
            &["call_depth"],
        ),
        ("giant output", main("    return 'a' * 8000000"), &["output_bytes"]),
        ("giant output by sharing", main("    a = ['x' * 1000] * 1000\n    return [a] * 1000"), &["output_bytes"]),
        ("deep value", main("    a = []\n    for i in range(100000): a = [a]\n    return a"), &[""]),
        (
            "repr of a deep value",
            main("    a = []\n    for i in range(1000000): a = [a]\n    return len(str(a))"),
            &["stack_mb", "memory_mb", ""],
        ),
        (
            "equality of deep values",
            main(
                "    a = []\n    b = []\n    for i in range(1000000):\n        a = [a]\n        b = [b]\n    return a == b",
            ),
            &["stack_mb", "memory_mb", "call_depth", ""],
        ),
        ("value that holds itself", main("    a = []\n    a.append(a)\n    return a"), &[""]),
        ("load", "load('/etc/passwd', 'x')\ndef main(ctx, input):\n    return x\n".to_owned(), &[""]),
        ("files", main("    return open('/etc/passwd')"), &[""]),
        ("imports", "import os\ndef main(ctx, input):\n    return 1\n".to_owned(), &[""]),
        ("eval", main("    return eval('1')"), &[""]),
        ("work at load", "x = [0] * 500000000\ndef main(ctx, input):\n    return 1\n".to_owned(), memory),
        (
            "endless work at load",
            "x = [i for i in range(2000000000) if i < 0]\ndef main(ctx, input):\n    return 1\n".to_owned(),
            cpu,
        ),
        (
            "parentheses",
            format!("def main(ctx, input):\n    return {}1{}\n", "(".repeat(20_000), ")".repeat(20_000)),
            &["stack_mb", ""],
        ),
        (
            "lists",
            format!("def main(ctx, input):\n    return {}{}\n", "[".repeat(20_000), "]".repeat(20_000)),
            &["stack_mb", ""],
        ),
        (
            "a sum without end",
            format!("def main(ctx, input):\n    return {}1\n", "1+".repeat(20_000)),
            &["stack_mb", ""],
        ),
        (
            "minus without end",
            format!("def main(ctx, input):\n    return {}1\n", "-".repeat(40_000)),
            &["stack_mb", ""],
        ),
        (
            "nested functions",
            (0..150).map(|n| format!("{}def f{n}():\n", " ".repeat(n))).collect::<String>()
                + &" ".repeat(150)
                + "pass\n",
            &["stack_mb", ""],
        ),
        ("json bomb", main("    return json.decode('[' * 100000)"), &["stack_mb", "memory_mb", ""]),
    ]
}

fn hostile(source: &str) -> Code {
    Code { memory_mb: MEMORY_MB, cpu_milli: 10, ..code(source) }
}

/// S9: the server goes on, its memory does not grow, each program ends in time, and a neighbour's call succeeds meanwhile.
#[tokio::test]
async fn hostile_programs_end_their_own_call_and_nothing_else() {
    let world = World::new();
    let neighbour = "def main(ctx, input):\n    return input + 1\n";
    assert_eq!(world.result(neighbour, "1").await, json!(2));
    let before = resident_kb();
    for (what, source, limits) in corpus() {
        let mut call = call_of(hostile(&source), false, "null");
        call.timeout = TIMEOUT;
        let began = Instant::now();
        let (ended, other) =
            tokio::join!(world.starlark.call(Box::new(call)), world.starlark.call(Box::new(plain(neighbour, "41"))));
        assert!(began.elapsed() < TIMEOUT * 2, "{what} took {:?}", began.elapsed());
        assert_eq!(other.unwrap().text, "42", "beside {what}");
        let Err(failure) = ended else {
            assert!(limits.contains(&""), "{what} succeeded");
            continue;
        };
        let usage = failure.usage;
        let failure = Failure::of(&failure.error);
        // Also of those that were killed.
        let ran = failure.details.get("limit").is_none_or(|limit| limit != "source_bytes");
        let is_known = usage.cpu_ms.is_some() && usage.memory_mb.is_some_and(|memory_mb| memory_mb > 0);
        assert!(is_known || !ran, "{what}: {usage:?} of {failure:?}");
        let limit = failure.details.get("limit").and_then(|limit| limit.as_str()).unwrap_or_default();
        assert!(limits.contains(&limit), "{what}: {failure:?}");
        if limit.is_empty() {
            assert_eq!(failure.category, ErrorCategory::NonRetryable, "{what}: {failure:?}");
        } else {
            assert_eq!(
                (failure.category, failure.error_type_id.as_str()),
                (ErrorCategory::ResourceLimit, errors::RESOURCE_LIMIT)
            );
        }
        if limit == "memory_mb" {
            assert_eq!(failure.details["value"], json!(MEMORY_MB));
        }
    }
    let grown = resident_kb().saturating_sub(before);
    assert!(grown < 10 * 1024, "this process grew by {grown} kB");
}

/// The same sources at registration: an issue each, or nothing to say, and never the end of the server.
#[tokio::test]
async fn hostile_sources_are_answered_with_an_issue() {
    let world = World::new();
    for (what, source, _) in corpus() {
        if let Err(issues) = world.starlark.check(&source).await {
            assert!(!issues.is_empty() && issues[0].line >= 1 && issues[0].column >= 1, "{what}: {issues:?}");
            let message = &issues[0].message;
            assert!(!message.contains("could not be checked"), "{what}: {message}");
        }
    }
    let four_kb = format!("x = {}1\ndef main(ctx, input):\n    return 1\n", "1+".repeat(2_000));
    assert_eq!(world.starlark.check(&four_kb).await, Ok(()));
    let long = world.starlark.check(&"#".repeat(65 * 1024)).await.unwrap_err();
    assert!(long[0].message.contains("source_bytes"), "{long:?}");
    let memory = world.starlark.check("x = [0] * 500000000\n").await.unwrap_err();
    assert!(memory[0].message.contains("64 MB"), "{memory:?}");
    let slow = world.starlark.check("x = [i for i in range(2000000000) if i < 0]\n").await.unwrap_err();
    assert!(slow[0].message.contains("ms of CPU") || slow[0].message.contains("seconds"), "{slow:?}");
}

/// SR-032: memory that an allocator has reserved is counted by no limit, so a child with much of it runs nothing.
#[cfg(target_env = "gnu")]
#[tokio::test]
async fn a_child_with_memory_in_store_is_refused() {
    let settings = |megabytes: u32| servo_adapter_starlark::Settings {
        env: vec![("GLIBC_TUNABLES".to_owned(), format!("glibc.malloc.top_pad={}", megabytes << 20))],
        ..crate::support::settings()
    };
    let source = "def main(ctx, input):\n    return 1\n";
    assert_eq!(World::with(settings(2)).result(source, "null").await, json!(1));
    let failure = World::with(settings(100)).call(source, "null").await.unwrap_err();
    let message = failure.error.error_message.unwrap_or_default();
    assert_eq!(failure.kind, servo_adapter::FailureKind::Crashed);
    assert!(message.contains("MB of memory in store"), "{message}");
}

#[tokio::test]
async fn log_lines_are_bounded() {
    let world = World::new();
    let source = "def main(ctx, input):\n    line = 'x' * 100000\n    for i in range(5000):\n        ctx.log(line)\n    return 1\n";
    let mut call = call_of(Code { memory_mb: 512, ..code(source) }, false, "null");
    call.timeout = Duration::from_secs(60);
    let before = resident_kb();
    drop(world.starlark.call(Box::new(call)).await);
    let bytes: usize = world.lines.texts().iter().map(String::len).sum();
    assert!(bytes <= 256 * 1024, "{bytes}");
    assert!(world.lines.texts().iter().all(|line| line.len() <= 64 * 1024));
    assert!(resident_kb().saturating_sub(before) < 10 * 1024);
}

#[tokio::test]
async fn a_call_that_waits_too_long_is_ended_by_the_clock() {
    let world = World::new();
    let source = "def main(ctx, input):\n    for i in range(2000000000):\n        for j in range(2000000000): pass\n";
    // More CPU time than a core has, so that the clock is first.
    let mut call = call_of(Code { cpu_milli: 60_000, ..code(source) }, false, "null");
    call.timeout = Duration::from_millis(300);
    let began = Instant::now();
    let failure = world.starlark.call(Box::new(call)).await.unwrap_err();
    assert!(began.elapsed() < Duration::from_secs(20));
    assert!(failure.usage.cpu_ms.is_some() && failure.usage.memory_mb.is_some(), "{failure:?}");
    let failure = Failure::of(&failure.error);
    assert_eq!((failure.category, failure.error_type_id.as_str()), (ErrorCategory::Timeout, errors::TIMEOUT));
    assert_eq!(failure.details["limit"], "timeout_seconds");
}

/// A child that is killed from outside is a crash, which is worth another try, and the next call works.
#[tokio::test]
async fn a_killed_child_is_a_crash() {
    let world = World::new();
    let source = "def main(ctx, input):\n    ctx.log('here')\n    for i in range(2000000000):\n        for j in range(2000000000): pass\n";
    let killer = async {
        while world.lines.texts().is_empty() {
            tokio::task::yield_now().await;
        }
        let [child] = children()[..] else { panic!("one child works") };
        kill(child);
    };
    let (ended, ()) = tokio::join!(world.starlark.call(Box::new(plain(source, "null"))), killer);
    assert_eq!(ended.unwrap_err().kind, servo_adapter::FailureKind::Crashed);
    assert_eq!(world.result("def main(ctx, input):\n    return 1\n", "null").await, json!(1));
}

/// A dropped call takes its child along.
#[tokio::test]
async fn a_dropped_call_ends_its_child() {
    let world = World::new();
    let source = "def main(ctx, input):\n    ctx.log('here')\n    for i in range(2000000000):\n        for j in range(2000000000): pass\n";
    let started = async {
        while world.lines.texts().is_empty() {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        _ = world.starlark.call(Box::new(plain(source, "null"))) => panic!("it never ends"),
        () = started => {}
    }
    while !children().is_empty() {
        tokio::task::yield_now().await;
    }
}

/// Children are reused by the same tenant with the same source, and by nobody else.
#[tokio::test]
async fn children_belong_to_one_tenant_and_one_source() {
    let world = World::new();
    let source = "def main(ctx, input):\n    return 1\n";
    world.result(source, "null").await;
    let first = children();
    world.result(source, "null").await;
    assert_eq!(children(), first);
    let other = plain(source, "null");
    let other = servo_adapter::HandlerCall { tenant: TenantId::parse("umbrella").unwrap(), ..other };
    world.starlark.call(Box::new(other)).await.unwrap();
    assert_eq!(children().len(), 2);
    world.result("def main(ctx, input):\n    return 2\n", "null").await;
    assert_eq!(children().len(), 3);
}

#[tokio::test]
async fn there_are_never_more_children_than_allowed() {
    let world = World::with(servo_adapter_starlark::Settings { children_max: 2, ..crate::support::settings() });
    let sources: Vec<String> = (0..5).map(|n| format!("def main(ctx, input):\n    return {n}\n")).collect();
    let calls = sources.iter().map(|source| world.starlark.call(Box::new(plain(source, "null"))));
    for (n, reply) in futures_util::future::join_all(calls).await.into_iter().enumerate() {
        assert_eq!(reply.unwrap().text, n.to_string());
    }
    while children().len() > 2 {
        tokio::task::yield_now().await;
    }
}

/// A call for which there is no child in its time has not run, and says so; it comes again when there is room. One that had to wait has
/// all of its time, and the wait is told apart from it.
#[tokio::test]
async fn a_place_in_the_line_is_not_the_programs_time() {
    let world = World::with(servo_adapter_starlark::Settings { children_max: 1, ..crate::support::settings() });
    let busy = "def main(ctx, input):\n    for i in range(1000000000):\n        pass\n";
    let short = |source: &str, millis: u64| servo_adapter::HandlerCall {
        timeout: Duration::from_millis(millis),
        ..plain(source, "null")
    };
    let idle = "def main(ctx, input):\n    return 1\n";
    let (first, refused, waits) = tokio::join!(
        world.starlark.call(Box::new(short(busy, 1_000))),
        world.starlark.call(Box::new(short(idle, 50))),
        world.starlark.call(Box::new(short(idle, 30_000))),
    );
    assert!(first.is_err());
    let refused = refused.unwrap_err();
    assert_eq!(refused.kind, servo_adapter::FailureKind::Unreached);
    assert!(refused.usage.waited_ms >= 50, "{refused:?}");
    let waited = waits.unwrap();
    assert_eq!(waited.text, "1");
    assert!(waited.usage.waited_ms >= 500, "{waited:?}");
}

/// The processes that this one has started and that still are.
pub(crate) fn children() -> Vec<u32> {
    let own = std::process::id();
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
        let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else { continue };
        let Some((_, rest)) = stat.rsplit_once(')') else { continue };
        let mut fields = rest.split_whitespace();
        let (state, parent) = (fields.next(), fields.next().and_then(|parent| parent.parse::<u32>().ok()));
        if parent == Some(own) && state != Some("Z") {
            found.push(pid);
        }
    }
    found.sort_unstable();
    found
}

#[expect(unsafe_code, reason = "std has no signals to other processes")]
fn kill(pid: u32) {
    // SAFETY: two numbers.
    unsafe {
        libc::kill(i32::try_from(pid).unwrap(), libc::SIGKILL);
    }
}

pub(crate) fn resident_kb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.split_whitespace().next().unwrap().parse().unwrap()
}
