//! What runs in a child: it takes its own rights away, then parses and runs what the parent sends, one call at a time.
//!
//! Nothing here is trusted by the parent: limits are set from outside, sizes are checked on both ends, and a child that
//! breaks a rule is killed.

mod arguments;
#[expect(unsafe_code, unused_qualifications, reason = "starlark's derives write unsafe impls and long paths")]
#[expect(clippy::too_many_arguments, reason = "named parameters of Starlark functions")]
mod ctx;
mod harden;
mod json;
pub(crate) mod last_words;
mod link;
mod meter;
mod module;
#[expect(unsafe_code, unused_qualifications, reason = "starlark's derives write unsafe impls and long paths")]
mod object;
mod op;
mod ops;
mod outbox;
mod raised;
mod run;
#[cfg(target_os = "linux")]
mod seccomp;
#[expect(unsafe_code, unused_qualifications, reason = "starlark's derives write unsafe impls and long paths")]
mod secret;
#[expect(unsafe_code, unused_qualifications, reason = "starlark's derives write unsafe impls and long paths")]
mod session;

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::rc::Rc;
use std::sync::Arc;

use starlark::environment::{FrozenModule, Globals};

use crate::SourceIssue;
use crate::protocol::{ChildUsage, FromChild, Outcome, ToChild};
use link::Link;
use meter::Meter;
use outbox::Outbox;

/// The parser and the interpreter recurse on the source and on values; what needs more than this is nested too deep.
pub(crate) const STACK_MB: u64 = 64;
const STACK_BYTES: usize = STACK_MB as usize * 1024 * 1024;

/// Serves a parent over standard input and output until it closes them. To be called first thing in `main`: it closes every
/// other file, and what it takes of memory before is counted as its own.
pub fn worker_main() -> ExitCode {
    let early = harden::before_threads();
    crate::kept_stack::keep();
    let outbox = Arc::new(Outbox::standard());
    let served = Served(outbox.clone());
    let program = std::thread::Builder::new().name("starlark".to_owned()).stack_size(STACK_BYTES);
    let Ok(thread) = program.spawn(move || serve(&served, early)) else { return ExitCode::FAILURE };
    // This thread has nothing else to do.
    outbox.watch();
    match thread.join() {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

/// Held by the thread that runs programs: however it ends, the watch over it ends as well.
struct Served(Arc<Outbox>);

impl Drop for Served {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// The parent said something that makes no sense, or we did.
#[expect(clippy::print_stderr, reason = "the parent reads what a child says last")]
fn broken(message: &str) -> ! {
    eprintln!("starlark worker: {message}");
    std::process::exit(70)
}

fn serve(served: &Served, early: Result<bool, String>) {
    let is_apart = early.unwrap_or_else(|message| broken(&message));
    let globals = module::globals();
    // What is made on first use is made now, while files can be opened and before memory is counted.
    drop(module::load("def main(ctx, input):\n  return input\n", &globals));
    let Ok(mut meter) = Meter::open() else { broken("/proc is not there; it is needed to measure calls") };
    if let Err(message) = harden::lock_down() {
        broken(&message);
    }
    let link = Rc::new(RefCell::new(Link::standard(served.0.clone())));
    link.borrow().send(&meter.ready(is_apart), &[]);
    let mut child = Child { globals, source: String::new(), module: None, meter };
    loop {
        let (head, body) = link.borrow_mut().receive();
        match head {
            ToChild::Load => {
                let Ok(source) = String::from_utf8(body) else { broken("a source is no UTF-8") };
                child.source = source;
                child.module = None;
            }
            ToChild::Check { cpu_ms } => {
                child.meter.start(cpu_ms);
                let loaded = guarded(|| child.load());
                let panicked = loaded.is_err();
                let issues = match loaded {
                    Ok(loaded) => loaded.err().into_iter().collect(),
                    Err(_) => vec![SourceIssue::whole("the source asks for more than the interpreter can do", None)],
                };
                link.borrow().send(&FromChild::Checked { issues }, &[]);
                if panicked {
                    std::process::exit(0);
                }
            }
            ToChild::Call(head) => child.call(*head, &body, &link),
            other => broken(&format!("nobody asked for {other:?}")),
        }
    }
}

struct Child {
    globals: Globals,
    source: String,
    module: Option<FrozenModule>,
    meter: Meter,
}

impl Child {
    fn load(&mut self) -> Result<FrozenModule, SourceIssue> {
        if let Some(module) = &self.module {
            return Ok(module.clone());
        }
        let module = module::load(&self.source, &self.globals)?;
        Ok(self.module.insert(module).clone())
    }

    fn call(&mut self, head: crate::protocol::CallHead, body: &[u8], link: &Rc<RefCell<Link>>) {
        self.meter.start(head.cpu_ms);
        // Also loading can panic: what is constant is computed there.
        let ran = guarded(|| match self.load() {
            Ok(module) => run::run(&module, link, head, body),
            Err(issue) => (Outcome::Failed { error: source_error(&issue) }, String::new()),
        });
        let (outcome, text) = ran.unwrap_or_else(|message| (Outcome::Panicked { message }, String::new()));
        let usage: ChildUsage = self.meter.stop();
        let last = matches!(outcome, Outcome::Panicked { .. });
        link.borrow().send(&FromChild::Done { outcome, usage }, text.as_bytes());
        if last {
            // Whatever panicked may have left its own data half changed.
            std::process::exit(0);
        }
    }
}

/// The interpreter panics where it finds no way out, such as a string that is too long. The message tells which one it was.
fn guarded<R>(work: impl FnOnce() -> R) -> Result<R, String> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("unknown");
        servo_model::limits::clip(text).to_owned()
    })
}

fn source_error(issue: &SourceIssue) -> servo_model::operation::ErrorObject {
    use servo_model::invocation::{ErrorCategory, Failure, errors};
    let message = format!("line {}, column {}: {}", issue.line, issue.column, issue.message);
    Failure::new(errors::EXECUTION, ErrorCategory::NonRetryable, message).to_error()
}
