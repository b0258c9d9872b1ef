//! One thing that happens to a run under test, with a short notation that parses and prints.
//!
//! `new [queue|delay=MS] [approval]`, `begin`, `start a#1 [late=MS]`, `take a#1`, `ok a#1/1`, `fail a#1/1 [retryable]`,
//! `pause`, `resume`, `cancel`, `approve`, `retry-run`, `retry a`, `skip a` (each with `[id=N] [denied] [reason=X]`),
//! `tick`, `terminate`, `+MS` and `-MS` for the clock, `max=N`, `drain=MS`, `orphans` for the policy. Attempts and engine
//! attempts are 1 where they are left out.

use std::fmt;
use std::str::FromStr;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Gate {
    Now,
    Queue,
    Delay(i64),
}

/// An attempt of a step; steps are single letters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct At {
    pub step: char,
    pub attempt: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Sign {
    Pause,
    Resume,
    Cancel,
    Approve,
    RetryRun,
    Retry(char),
    Skip(char),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Signed {
    pub sign: Sign,
    /// Left out: one that was not used before.
    pub id: Option<u32>,
    pub denied: bool,
    /// `long` stands for a text above the limit.
    pub reason: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Op {
    New {
        gate: Gate,
        approval: bool,
    },
    Begin,
    Start {
        at: At,
        late: Option<i64>,
    },
    Take(At),
    Ok {
        at: At,
        engine: u32,
    },
    Fail {
        at: At,
        engine: u32,
        retryable: bool,
    },
    Signal(Signed),
    Tick,
    Terminate,
    /// Not commands: the clock and the policy.
    Clock(i64),
    Max(u64),
    Drain(u64),
    /// Late results are refused (the contract's option B).
    Orphans,
}

impl Op {
    pub(crate) fn signal(sign: Sign, id: u32) -> Self {
        Op::Signal(Signed { sign, id: Some(id), denied: false, reason: None })
    }
}

/// Reads operations divided by `;` or line ends.
pub(crate) fn ops(text: &str) -> Vec<Op> {
    text.split([';', '\n']).map(str::trim).filter(|part| !part.is_empty()).map(op).collect()
}

pub(crate) fn op(text: &str) -> Op {
    let mut words = text.split_whitespace();
    let name = words.next().expect("an operation has a name");
    let rest: Vec<&str> = words.collect();
    let flag = |name: &str| rest.contains(&name);
    match name {
        "new" => {
            let delay = value(&rest, "delay=").map(Gate::Delay);
            let queue = flag("queue").then_some(Gate::Queue);
            Op::New { gate: delay.or(queue).unwrap_or(Gate::Now), approval: flag("approval") }
        }
        "begin" => Op::Begin,
        "start" => Op::Start { at: at(&rest).0, late: value(&rest, "late=") },
        "take" => Op::Take(at(&rest).0),
        "ok" => {
            let (at, engine) = at(&rest);
            Op::Ok { at, engine }
        }
        "fail" => {
            let (at, engine) = at(&rest);
            Op::Fail { at, engine, retryable: flag("retryable") }
        }
        "tick" => Op::Tick,
        "terminate" => Op::Terminate,
        "orphans" => Op::Orphans,
        _ => setting(name).unwrap_or_else(|| signal(name, &rest)),
    }
}

fn setting(name: &str) -> Option<Op> {
    if let Some(max) = name.strip_prefix("max=") {
        return Some(Op::Max(number(max)));
    }
    if let Some(drain) = name.strip_prefix("drain=") {
        return Some(Op::Drain(number(drain)));
    }
    name.starts_with(['+', '-']).then(|| Op::Clock(number(name)))
}

fn signal(name: &str, rest: &[&str]) -> Op {
    let step = || rest.first().and_then(|word| word.chars().next()).expect("the signal names a step");
    let sign = match name {
        "pause" => Sign::Pause,
        "resume" => Sign::Resume,
        "cancel" => Sign::Cancel,
        "approve" => Sign::Approve,
        "retry-run" => Sign::RetryRun,
        "retry" => Sign::Retry(step()),
        "skip" => Sign::Skip(step()),
        other => panic!("no operation `{other}`"),
    };
    let reason = rest.iter().find_map(|word| word.strip_prefix("reason=")).map(str::to_owned);
    Op::Signal(Signed { sign, id: value(rest, "id="), denied: rest.contains(&"denied"), reason })
}

/// `a`, `a#2` or `a#2/3`.
fn at(rest: &[&str]) -> (At, u32) {
    let word = rest.first().expect("the operation names a step");
    let (word, engine) = word.split_once('/').map_or((*word, 1), |(word, engine)| (word, number(engine)));
    let (step, attempt) = word.split_once('#').map_or((word, 1), |(step, attempt)| (step, number(attempt)));
    (At { step: step.parse().expect("a step is one letter"), attempt }, engine)
}

fn value<T: FromStr>(rest: &[&str], name: &str) -> Option<T> {
    rest.iter().find_map(|word| word.strip_prefix(name)).map(number)
}

fn number<T: FromStr>(text: &str) -> T {
    text.parse().unwrap_or_else(|_| panic!("`{text}` is no number"))
}

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}#{}", self.step, self.attempt)
    }
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Op::New { gate, approval } => {
                f.write_str("new")?;
                match gate {
                    Gate::Now => {}
                    Gate::Queue => f.write_str(" queue")?,
                    Gate::Delay(ms) => write!(f, " delay={ms}")?,
                }
                if *approval { f.write_str(" approval") } else { Ok(()) }
            }
            Op::Begin => f.write_str("begin"),
            Op::Start { at, late: None } => write!(f, "start {at}"),
            Op::Start { at, late: Some(ms) } => write!(f, "start {at} late={ms}"),
            Op::Take(at) => write!(f, "take {at}"),
            Op::Ok { at, engine } => write!(f, "ok {at}/{engine}"),
            Op::Fail { at, engine, retryable } => {
                write!(f, "fail {at}/{engine}{}", if *retryable { " retryable" } else { "" })
            }
            Op::Signal(signed) => signed.fmt(f),
            Op::Tick => f.write_str("tick"),
            Op::Terminate => f.write_str("terminate"),
            Op::Clock(ms) => write!(f, "{ms:+}"),
            Op::Max(max) => write!(f, "max={max}"),
            Op::Drain(ms) => write!(f, "drain={ms}"),
            Op::Orphans => f.write_str("orphans"),
        }
    }
}

impl fmt::Display for Signed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.sign {
            Sign::Pause => f.write_str("pause")?,
            Sign::Resume => f.write_str("resume")?,
            Sign::Cancel => f.write_str("cancel")?,
            Sign::Approve => f.write_str("approve")?,
            Sign::RetryRun => f.write_str("retry-run")?,
            Sign::Retry(step) => write!(f, "retry {step}")?,
            Sign::Skip(step) => write!(f, "skip {step}")?,
        }
        if let Some(id) = self.id {
            write!(f, " id={id}")?;
        }
        if self.denied {
            f.write_str(" denied")?;
        }
        self.reason.as_ref().map_or(Ok(()), |reason| write!(f, " reason={reason}"))
    }
}

#[test]
fn the_notation_reads_what_it_prints() {
    let text = "new queue approval; new delay=500; begin; start a#2 late=30; take a#1; ok b#1/2; fail c#3/1 retryable; \
                pause id=4 denied; retry-run; retry a reason=x; skip b id=7; tick; terminate; +500; -20; max=70; \
                drain=5; orphans";
    let printed: Vec<String> = ops(text).iter().map(Op::to_string).collect();
    assert_eq!(printed.join("; "), text);
}
