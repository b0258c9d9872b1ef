//! Where lines go: into a bounded buffer, from which a thread of its own writes them. Whoever logs never waits: a pipe that
//! nobody reads, a full disk or a closed stderr costs lines, which are counted and told of, and nothing else.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use servo_runtime::{Clock as _, SystemClock};
use tracing::callsite::Identifier;
use tracing::{Level, Metadata};
use tracing_subscriber::fmt::MakeWriter;

use super::fold::{Folds, Told};
use super::form::Form;

/// What may wait to be written.
const WAITING_BYTES_MAX: usize = 4 * 1024 * 1024;
/// How often counts are looked at that are to be told.
const TELL_EVERY: Duration = Duration::from_secs(1);

/// A handle: cheap to clone.
#[derive(Clone)]
pub(crate) struct Sink(Arc<Shared>);

struct Shared {
    state: Mutex<State>,
    /// Something is to be done.
    more: Condvar,
    /// Everything has been written.
    idle: Condvar,
    form: Form,
}

#[derive(Default)]
struct State {
    lines: VecDeque<Vec<u8>>,
    bytes: usize,
    /// Lines that found no room, or could not be written; told with the next one that can.
    dropped: u64,
    is_writing: bool,
    reopens: bool,
    folds: Folds,
}

/// Opens what is written to; asked again after a rotation.
pub(super) type Open = Box<dyn FnMut() -> io::Result<Box<dyn Write + Send>> + Send>;

impl Sink {
    /// Fails if it cannot be opened now.
    pub(super) fn start(form: Form, mut open: Open) -> io::Result<Self> {
        let target = open()?;
        let shared = Shared { state: Mutex::default(), more: Condvar::new(), idle: Condvar::new(), form };
        let sink = Self(Arc::new(shared));
        let writing = sink.clone();
        let thread = std::thread::Builder::new().name("servo-log".to_owned());
        thread.spawn(move || writing.write_all(target, open))?;
        Ok(sink)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Words for people, as they are.
    pub(crate) fn say(&self, text: &str) {
        self.push(&mut self.lock(), format!("{}\n", text.trim_end_matches('\n')).into_bytes());
        self.0.more.notify_one();
    }

    fn log(&self, site: &Identifier, level: Level, line: &[u8]) {
        let mut state = self.lock();
        let mut told = Vec::new();
        let now = SystemClock.elapsed();
        let passes = state.folds.passes(now, site, level, line, &mut told);
        self.tell(&mut state, &told);
        if passes {
            self.push(&mut state, self.0.form.stamped(line));
        }
        drop(state);
        self.0.more.notify_one();
    }

    fn tell(&self, state: &mut State, told: &[Told]) {
        for told in told {
            self.push(state, self.0.form.stamped(&self.0.form.told(told)));
        }
    }

    fn push(&self, state: &mut State, line: Vec<u8>) {
        if state.bytes + line.len() > WAITING_BYTES_MAX {
            return drop_lines(state, 1);
        }
        state.bytes += line.len();
        state.lines.push_back(line);
    }

    /// The file was moved away: the next line goes to a new one.
    pub(crate) fn reopen(&self) {
        self.lock().reopens = true;
        self.0.more.notify_one();
    }

    /// Waits until everything is written, but no longer than this.
    pub(crate) fn flush(&self, within: Duration) {
        let mut state = self.lock();
        let mut told = Vec::new();
        state.folds.end(&mut told);
        self.tell(&mut state, &told);
        self.0.more.notify_one();
        let busy = |state: &mut State| state.is_writing || !state.lines.is_empty();
        drop(self.0.idle.wait_timeout_while(state, within, busy));
    }

    fn write_all(&self, mut target: Box<dyn Write + Send>, mut open: Open) {
        loop {
            let (lines, dropped, reopens) = self.next();
            if reopens {
                match open() {
                    Ok(opened) => target = opened,
                    // The old one still takes lines, wherever it is now.
                    Err(error) => {
                        let message = format!("the log file could not be opened again: {error}");
                        let _ = target.write_all(&self.0.form.stamped(&self.0.form.warning(&message)));
                    }
                }
            }
            let lost = lines.into_iter().filter(|line| write(&mut target, line).is_err()).count();
            // They came when there was no more room, so after these.
            let mut untold = 0;
            if dropped > 0 {
                let noun = if dropped == 1 { "line was" } else { "lines were" };
                let message = format!("{dropped} {noun} dropped from the log: they could not be written in time");
                if write(&mut target, &self.0.form.stamped(&self.0.form.warning(&message))).is_err() {
                    untold = dropped;
                }
            }
            let _ = target.flush();
            let mut state = self.lock();
            state.dropped += untold;
            drop_lines(&mut state, u64::try_from(lost).unwrap_or(u64::MAX));
            state.is_writing = false;
            if state.lines.is_empty() {
                self.0.idle.notify_all();
            }
        }
    }

    /// Waits for lines, and takes all of them.
    fn next(&self) -> (VecDeque<Vec<u8>>, u64, bool) {
        let mut state = self.lock();
        while state.lines.is_empty() && !state.reopens {
            if state.folds.has_untold() {
                let (next, timed_out) =
                    self.0.more.wait_timeout(state, TELL_EVERY).unwrap_or_else(PoisonError::into_inner);
                state = next;
                if timed_out.timed_out() {
                    let mut told = Vec::new();
                    state.folds.end_windows(SystemClock.elapsed(), &mut told);
                    self.tell(&mut state, &told);
                }
            } else {
                state = self.0.more.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
        }
        state.is_writing = true;
        state.bytes = 0;
        let dropped = std::mem::take(&mut state.dropped);
        (std::mem::take(&mut state.lines), dropped, std::mem::take(&mut state.reopens))
    }
}

fn drop_lines(state: &mut State, count: u64) {
    if count > 0 {
        state.dropped += count;
        metrics::counter!("servo_log_lines_dropped_total").increment(count);
    }
}

/// Somebody else may have made stderr such that it never waits.
fn write(target: &mut Box<dyn Write + Send>, mut line: &[u8]) -> io::Result<()> {
    while !line.is_empty() {
        match target.write(line) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => line = &line[written..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => std::thread::park_timeout(TELL_EVERY / 20),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// One line on its way into the buffer.
pub(crate) struct Line<'a> {
    sink: &'a Sink,
    of: Option<(Identifier, Level)>,
}

impl Write for Line<'_> {
    /// The subscriber writes a line at a time.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        match &self.of {
            Some((site, level)) => self.sink.log(site, *level, line),
            None => self.sink.say(&String::from_utf8_lossy(line)),
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Sink {
    type Writer = Line<'a>;

    fn make_writer(&'a self) -> Line<'a> {
        Line { sink: self, of: None }
    }

    fn make_writer_for(&'a self, metadata: &Metadata<'_>) -> Line<'a> {
        Line { sink: self, of: Some((metadata.callsite(), *metadata.level())) }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{self, Receiver, SyncSender};

    use super::*;

    /// Takes a line when somebody receives it; without anybody it fails.
    struct Pipe(SyncSender<Vec<u8>>);

    impl Write for Pipe {
        fn write(&mut self, line: &[u8]) -> io::Result<usize> {
            self.0.send(line.to_vec()).map_err(|_| io::ErrorKind::BrokenPipe)?;
            Ok(line.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn piped() -> (Sink, Receiver<Vec<u8>>) {
        let (lines, read) = mpsc::sync_channel(0);
        let open: Open = Box::new(move || Ok(Box::new(Pipe(lines.clone()))));
        (Sink::start(Form::Text { coloured: false }, open).unwrap(), read)
    }

    fn text(line: Vec<u8>) -> String {
        String::from_utf8(line).unwrap()
    }

    /// Nobody reads: whoever logs goes on, and hears later how much was dropped.
    #[test]
    fn a_pipe_that_nobody_reads_costs_lines_and_no_time() {
        let (sink, read) = piped();
        let kilobyte = "x".repeat(1_023);
        sink.say("first");
        // What the thread has taken already, what waits, and more.
        for _ in 0..2 * WAITING_BYTES_MAX / 1_024 + 500 {
            sink.say(&kilobyte);
        }
        let lines: Vec<String> = read.into_iter().map(text).take_while(|line| !line.contains("dropped")).collect();
        assert_eq!(lines[0], "first\n");
        assert!(lines.len() > WAITING_BYTES_MAX / 1_024, "what fits is kept: {}", lines.len());
    }

    #[test]
    fn a_target_that_takes_nothing_is_no_reason_to_end() {
        let (sink, read) = piped();
        drop(read);
        for _ in 0..10 {
            sink.say("lost");
            sink.flush(Duration::from_secs(60));
        }
        assert_eq!(sink.lock().dropped, 10);
    }

    #[test]
    fn a_flush_waits_no_longer_than_it_is_told() {
        let (sink, _nobody_reads) = piped();
        sink.say("stuck");
        sink.flush(Duration::from_millis(10));
    }

    #[test]
    fn after_a_rotation_lines_go_to_a_new_file() {
        let folder = tempfile::tempdir().unwrap();
        let (path, moved) = (folder.path().join("servo.log"), folder.path().join("servo.log.1"));
        let sink = Sink::start(Form::Text { coloured: false }, super::super::to_file(&path)).unwrap();
        let settle = || sink.flush(Duration::from_secs(60));
        sink.say("before");
        settle();
        std::fs::rename(&path, &moved).unwrap();
        sink.say("still there");
        settle();
        sink.reopen();
        sink.say("after");
        settle();
        assert_eq!(std::fs::read_to_string(&moved).unwrap(), "before\nstill there\n");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "after\n");
        use std::os::unix::fs::PermissionsExt as _;
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }
}
