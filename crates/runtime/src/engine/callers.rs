//! Callers whose starts are being recorded, and how work that nobody waits for gives way to them.
//!
//! Such work is done by threads that yield (`Tasks::spawn_behind`), but an invocation is more than what its thread does: the store,
//! connections and its handler work for it as well, and those yield to nobody. So while callers stand in line for the
//! processor, one such invocation is begun for every few callers that are answered (ADR 29).

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::future::{FutureExt as _, lazy};
use tokio::sync::Notify;

use super::Engine;
use crate::clock::Clock;
use crate::tasks::Tasks;

/// Callers who are answered between two invocations that nobody waits for.
const ANSWERED: u64 = 10;
/// With so many starts under way on average, callers stand in line. One that comes alone is recorded long before the next.
const CROWD: u64 = 8;
/// Work behind that is begun within this time, in microseconds and on average, finds a processor free: where callers wait for a disk
/// and not for a processor, nobody has to give way to them.
const SOON: u64 = 300;
/// No single one counts for more, as after a pause of the whole machine.
const LAG_MAX: u64 = 2_000;
/// What the dispatcher may catch up with after it came late to its turn.
const LATE: u64 = 4 * ANSWERED;
/// However slowly callers are answered, an invocation is begun after this time. Whatever takes its turn behind one waits as long.
const LONGEST: Duration = Duration::from_millis(3);

/// As seen by one node. Numbers that are changed by two at once may miss one of them where nothing but an average follows.
#[derive(Debug, Default)]
pub(crate) struct Callers {
    under_way: AtomicU64,
    answered: AtomicU64,
    /// How many were under way when one more came.
    crowd: Average,
    /// How long work behind waited for a thread, in microseconds.
    lag: Average,
    /// How many must have been answered for the dispatcher to go on; zero while it does not wait.
    wanted: AtomicU64,
    /// How many had to be the last time.
    last: AtomicU64,
    told: Notify,
}

/// Of the last ones, the older the less.
#[derive(Debug, Default)]
struct Average(AtomicU64);

impl Average {
    const OF: u64 = 32;

    fn note(&self, value: u64) {
        let sum = self.0.load(Ordering::Relaxed);
        self.0.store(sum - sum / Self::OF + value, Ordering::Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed) / Self::OF
    }

    fn lower_to(&self, value: u64) {
        self.0.fetch_min(value * Self::OF, Ordering::Relaxed);
    }
}

impl Callers {
    pub(super) fn enter(&self) {
        self.crowd.note(self.under_way.fetch_add(1, Ordering::Relaxed));
    }

    /// Answered, or gone away.
    pub(super) fn leave(&self) {
        self.under_way.fetch_sub(1, Ordering::Relaxed);
        // First counted, then looked: who waits does it the other way round, so one of the two sees the other.
        let answered = self.answered.fetch_add(1, Ordering::SeqCst) + 1;
        let wanted = self.wanted.load(Ordering::SeqCst);
        if wanted > 0 && answered >= wanted {
            self.told.notify_one();
        }
    }

    fn note_lag(&self, lag: Duration) {
        self.lag.note(u64::try_from(lag.as_micros()).unwrap_or(u64::MAX).min(LAG_MAX));
    }

    pub(crate) fn stand_in_line(&self) -> bool {
        self.crowd.get() >= CROWD && self.lag.get() >= SOON
    }

    /// Ready when the next dispatch may be handed out, if the last one is an invocation that nobody waits for. The dispatcher alone
    /// asks, and only while callers stand in line.
    pub(crate) async fn give_way(&self, clock: &dyn Clock, is_behind: impl Future<Output = bool>) {
        let late = self.answered.load(Ordering::SeqCst).saturating_sub(LATE);
        let wanted = late.max(self.last.load(Ordering::Relaxed) + ANSWERED);
        self.wanted.store(wanted, Ordering::SeqCst);
        let answered = async {
            if !is_behind.await {
                return false;
            }
            while self.answered.load(Ordering::SeqCst) < wanted {
                self.told.notified().await;
            }
            true
        };
        let last = tokio::select! {
            biased;
            has_given_way = answered => has_given_way.then_some(wanted),
            () = clock.sleep(LONGEST) => {
                // Where hardly anybody comes any more, there is no crowd, whatever there was.
                self.crowd.lower_to(self.under_way.load(Ordering::Relaxed));
                Some(self.answered.load(Ordering::SeqCst))
            }
        };
        self.wanted.store(0, Ordering::SeqCst);
        if let Some(last) = last {
            self.last.store(last, Ordering::Relaxed);
        }
    }
}

impl Engine {
    /// Has work done that nobody waits for, and notes how long it waits for a thread.
    pub(crate) fn spawn_behind(&self, tasks: &Tasks, work: impl Future<Output = ()> + Send + 'static) {
        let (engine, asked) = (self.clone(), self.clock().elapsed());
        let begin = lazy(move |_| engine.callers().note_lag(engine.clock().elapsed().saturating_sub(asked)));
        // Not an async block: that would have the work inside twice.
        tasks.spawn_behind("attempt", begin.then(move |()| work));
    }
}

#[cfg(test)]
mod tests {
    use futures_util::future::{BoxFuture, pending, ready};
    use servo_model::Timestamp;

    use super::*;

    /// Whether a sleep is over at once, or never.
    struct Still {
        is_over: bool,
    }

    impl Clock for Still {
        fn now(&self) -> Timestamp {
            Timestamp::EPOCH
        }

        fn sleep(&self, _: Duration) -> BoxFuture<'static, ()> {
            if self.is_over { ready(()).boxed() } else { pending().boxed() }
        }
    }

    const NEVER: Still = Still { is_over: false };
    const AT_ONCE: Still = Still { is_over: true };

    /// So many callers, who stay; and work behind that waited so long.
    fn callers(many: u64, lag: Duration) -> Callers {
        let callers = Callers::default();
        for _ in 0..200 {
            (0..many).for_each(|_| callers.enter());
            (0..many).for_each(|_| callers.leave());
            callers.note_lag(lag);
        }
        (0..many).for_each(|_| callers.enter());
        callers.last.store(callers.answered.load(Ordering::Relaxed), Ordering::Relaxed);
        callers
    }

    /// Whether the dispatcher goes on after an invocation that nobody waits for.
    fn goes_on(callers: &Callers, clock: &Still) -> bool {
        !callers.stand_in_line() || callers.give_way(clock, ready(true)).now_or_never().is_some()
    }

    #[test]
    fn way_is_given_to_many_callers_where_the_processor_is_short() {
        let (short, soon) = (Duration::from_millis(2), Duration::from_micros(50));
        for (many, lag, gives_way) in
            [(64, short, true), (20, short, true), (64, soon, false), (8, short, false), (0, short, false)]
        {
            let callers = callers(many, lag);
            assert_eq!(!goes_on(&callers, &NEVER), gives_way, "{many} callers, {lag:?}");
        }
    }

    #[test]
    fn a_pause_of_the_machine_is_no_short_processor() {
        let callers = callers(64, Duration::from_micros(50));
        callers.note_lag(Duration::from_secs(10));
        assert!(!callers.stand_in_line());
    }

    #[test]
    fn nothing_that_somebody_waits_for_gives_way() {
        let callers = callers(64, Duration::from_millis(2));
        for _ in 0..20 {
            assert!(callers.give_way(&NEVER, ready(false)).now_or_never().is_some());
        }
        assert!(!goes_on(&callers, &NEVER));
    }

    #[test]
    fn an_invocation_is_begun_for_ten_callers() {
        let callers = callers(64, Duration::from_millis(2));
        for _ in 0..3 {
            let mut way = std::pin::pin!(callers.give_way(&NEVER, ready(true)));
            for _ in 0..10 {
                assert!(way.as_mut().now_or_never().is_none());
                callers.leave();
            }
            assert!(way.now_or_never().is_some());
        }
    }

    #[test]
    fn who_comes_late_catches_up_with_a_few() {
        let callers = callers(200, Duration::from_millis(2));
        (0..100).for_each(|_| callers.leave());
        for _ in 0..=4 {
            assert!(goes_on(&callers, &NEVER));
        }
        assert!(!goes_on(&callers, &NEVER));
    }

    #[test]
    fn an_invocation_is_begun_however_slowly_callers_are_answered() {
        let callers = callers(64, Duration::from_millis(2));
        assert!(goes_on(&callers, &AT_ONCE));
        assert!(callers.stand_in_line(), "they still do");
    }

    #[test]
    fn nobody_gives_way_to_callers_who_have_gone() {
        let callers = callers(64, Duration::from_millis(2));
        (0..63).for_each(|_| callers.leave());
        callers.last.store(callers.answered.load(Ordering::Relaxed), Ordering::Relaxed);
        assert!(!goes_on(&callers, &NEVER), "others may come");
        assert!(goes_on(&callers, &AT_ONCE));
        assert!(!callers.stand_in_line(), "one is there, and nobody came");
    }
}
