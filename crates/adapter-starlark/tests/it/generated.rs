//! S9: programs that nobody wrote. Each runs to its end over suspensions and lost calls, ends as it does without them, and a
//! replay of the whole record gives the same result and records nothing.
//!
//! `SERVO_TEST_SCRIPTS=1000` runs as many; without it a few. A failure prints its seed and the program.

use servo_model::operation::{ErrorObject, OperationStatus};
use servo_wire::lambda::InvocationStatus;

use crate::execution::Execution;
use crate::support::World;

const FEW: u64 = 40;
/// Invocations of one program, after which it counts as endless.
const INVOCATIONS_MAX: usize = 400;

/// Numbers from a seed, the same everywhere (splitmix64).
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn below(&mut self, most: u64) -> u64 {
        self.roll() % most
    }
}

struct Program {
    lines: Vec<String>,
    names: u32,
}

impl Program {
    fn of(seed: u64) -> String {
        let mut dice = Dice(seed);
        let mut program =
            Self { lines: vec!["def main(ctx, input):".to_owned(), "    x = input.n".to_owned()], names: 0 };
        for _ in 0..2 + dice.below(7) {
            program.statement(&mut dice, 1, 0);
        }
        program.put(1, "return [x, ctx.random() < 2, len(ctx.uuid())]");
        program.lines.join("\n") + "\n"
    }

    fn put(&mut self, depth: usize, text: &str) {
        self.lines.push(format!("{}{text}", "    ".repeat(depth)));
    }

    fn name(&mut self) -> u32 {
        self.names += 1;
        self.names
    }

    /// One statement that changes `x`, perhaps with others inside.
    fn statement(&mut self, dice: &mut Dice, depth: usize, nested: u32) {
        let (name, number) = (self.name(), dice.below(9) + 1);
        match dice.below(if nested < 2 { 15 } else { 10 }) {
            0 | 1 => self.put(depth, &format!("x = ctx.step('s{name}', lambda a: a + {number}, args = [x])")),
            2 => self.put(depth, &format!("ctx.sleep({number})")),
            3 => self.put(depth, &format!("x = x * {number} + (1 if ctx.now() > 0 else 0)")),
            4 => self.put(depth, &format!("x += ctx.wait_signal('g{name}', timeout = {}) or {number}", number * 10)),
            5 => self.put(depth, &format!("x += ctx.invoke('callee', {{'n': {number}}}, name = 'i{name}')")),
            6 => self.put(depth, &format!("ctx.emit('e{name}', {{'x': x, 'n': {number}}})")),
            7 => {
                let failing = format!("lambda: ctx.fail('no {number}')");
                self.put(depth, &format!("x += 0 if ctx.step('f{name}', {failing}, catch = True).ok else {number}"));
            }
            8 => {
                let call = format!("ctx.invoke('callee', timeout = {number}, name = 't{name}', catch = True)");
                self.put(depth, &format!("x += 1 if {call}.ok else 2"));
            }
            9 => self.put(depth, &format!("x += int(ctx.step('r{name}', lambda: ctx.random() < 2))")),
            10 => {
                self.put(depth, &format!("for _i{name} in range({}):", dice.below(3) + 1));
                self.statement(dice, depth + 1, nested + 1);
            }
            11 => {
                self.put(depth, &format!("if x % 2 == {}:", number % 2));
                self.statement(dice, depth + 1, nested + 1);
                self.put(depth, "else:");
                self.statement(dice, depth + 1, nested + 1);
            }
            12 | 13 => {
                // A branch has a number of its own, so that no branch sees what another made of it.
                self.put(depth, &format!("def branch{name}(item):"));
                self.put(depth + 1, "x = item");
                for _ in 0..=dice.below(2) {
                    self.statement(dice, depth + 1, nested + 1);
                }
                self.put(depth + 1, "return x");
                let most = if dice.below(2) == 0 { "None".to_owned() } else { (dice.below(2) + 1).to_string() };
                let items: Vec<_> = (0..=dice.below(3)).map(|item| item.to_string()).collect();
                let map = format!("ctx.map([{}], branch{name}, max_concurrency = {most})", items.join(", "));
                self.put(depth, &format!("x += len(str({map}))"));
            }
            _ => {
                let waits = format!("lambda: ctx.wait_event('p{name}', timeout = {number})");
                let steps = format!("lambda: ctx.step('q{name}', lambda: {number})");
                self.put(depth, &format!("x += len(str(ctx.parallel([{waits}, {steps}])))"));
            }
        }
    }
}

/// Lets whatever is waited for happen, until the program ends. With `lossy`, every so many checkpoints one is lost, as if the
/// process had died before it.
async fn drive(world: &World, execution: &Execution, lossy: Option<usize>) -> Result<String, String> {
    let mut lost = 0;
    for _ in 0..INVOCATIONS_MAX {
        if let Some(every) = lossy
            && execution.checkpoints() >= lost + every
        {
            lost = execution.checkpoints();
            execution.refuse_next(ErrorObject::new("InvalidParameterValueException", "Invalid checkpoint token: lost"));
        }
        let output = execution.invoke(world).await;
        match output.status {
            InvocationStatus::Succeeded => return Ok(output.result.unwrap_or_default()),
            InvocationStatus::Failed => return Err(format!("{:?}", output.error)),
            InvocationStatus::Pending => {}
        }
        // What others answer is there at once, and time passes in steps that no timeout is a multiple of.
        while execution.answer_call("7") {}
        execution.advance(3);
    }
    Err("no end".to_owned())
}

#[tokio::test]
async fn generated_programs_end_alike_however_they_are_interrupted() {
    #[expect(clippy::disallowed_methods, reason = "how many is said by whoever runs the tests")]
    let scripts = std::env::var("SERVO_TEST_SCRIPTS").ok().and_then(|text| text.parse().ok()).unwrap_or(FEW);
    let mut succeeded = 0;
    for seed in 0..scripts {
        let source = Program::of(seed);
        // A world has one execution.
        let (world, other) = (World::new(), World::new());
        let whole = Execution::new(&world, &source, r#"{"n": 3}"#);
        let outcome = drive(&world, &whole, None).await;
        assert!(outcome.as_ref().is_ok_and(|text| !text.is_empty()), "seed {seed}: {outcome:?}\n{source}");
        succeeded += 1;

        let recorded = whole.updates().len();
        let again = whole.invoke(&world).await;
        assert_eq!(again.result, outcome.clone().ok(), "seed {seed}: a replay differs\n{source}");
        assert_eq!(whole.updates().len(), recorded, "seed {seed}: a replay records\n{source}");

        let every = 1 + usize::try_from(seed % 4).unwrap();
        let interrupted = Execution::new(&other, &source, r#"{"n": 3}"#).paged(1 + every * 3);
        assert_eq!(drive(&other, &interrupted, Some(every)).await, outcome, "seed {seed}: interrupted\n{source}");
        let open = interrupted.statuses().into_iter().filter(|status| *status == OperationStatus::Ready).count();
        assert_eq!(open, 0, "seed {seed}: nothing is left to be tried\n{source}");
    }
    assert_eq!(succeeded, scripts);
}
