//! Programs that want too much, from a seed: what they blow up, by how much, and where in the program.

use crate::generated::Dice;

/// What is one after the other in any so many seeds.
pub(super) const KINDS: u64 = 36;

const MEMORY: &[&str] = &["memory_mb"];
const CPU: &[&str] = &["cpu_ms"];
const EITHER: &[&str] = &["memory_mb", "cpu_ms"];
/// Nested deeper than some stack allows, or than what reads it: then no limit is named, and the program is told so.
const DEEP: &[&str] = &["stack_mb", "memory_mb", "call_depth", ""];
const CALLS: &[&str] = &["call_depth", "stack_mb"];
const OUTPUT: &[&str] = &["output_bytes", "memory_mb"];
/// Wrong, or harmless after all.
const NONE: &[&str] = &[""];

pub(super) struct Bomb {
    pub(super) source: String,
    /// Those that may end it; the empty one is no limit.
    pub(super) limits: &'static [&'static str],
}

impl Bomb {
    pub(super) fn of(seed: u64) -> Self {
        let mut dice = Dice(seed);
        let kind = seed % KINDS;
        match kind {
            0..=17 => {
                let (expression, limits) = expression(kind, &mut dice);
                Self { source: somewhere(&expression, &mut dice), limits }
            }
            18..=28 => {
                let (body, limits) = statements(kind, &mut dice);
                Self { source: format!("def main(ctx, input):\n{body}\n"), limits }
            }
            _ => {
                let (source, limits) = whole(kind, &mut dice);
                Self { source, limits }
            }
        }
    }
}

/// One of these.
fn one<T: Copy>(dice: &mut Dice, of: &[T]) -> T {
    of[usize::try_from(dice.below(of.len() as u64)).unwrap()]
}

fn between(dice: &mut Dice, least: u64, most: u64) -> u64 {
    least + dice.below(most - least)
}

/// The same in `main`, in a function, in a lambda, in a comprehension, or while the source is loaded.
fn somewhere(expression: &str, dice: &mut Dice) -> String {
    match dice.below(5) {
        0 => format!("def main(ctx, input):\n    x = {expression}\n    return 1\n"),
        1 => format!("def f():\n    return {expression}\ndef main(ctx, input):\n    x = f()\n    return 1\n"),
        2 => format!("def main(ctx, input):\n    f = lambda: {expression}\n    x = f()\n    return 1\n"),
        3 => format!("def main(ctx, input):\n    x = [{expression} for _i in range(3)]\n    return 1\n"),
        _ => format!("x = {expression}\ndef main(ctx, input):\n    return 1\n"),
    }
}

fn expression(kind: u64, dice: &mut Dice) -> (String, &'static [&'static str]) {
    let huge = between(dice, 200_000_000, 2_000_000_000);
    let some = between(dice, 100_000, 1_000_000);
    match kind {
        // Repetition.
        0 => (format!("{} * {huge}", one(dice, &["'a'", "'abc'", "'\\u00e4'", "(1, 2)", "[0]", "[None, 1]"])), MEMORY),
        1 => (format!("[[0] * {some}] * 3 + [[1] * {huge}]"), MEMORY),
        // Ranges that become something.
        2 => (format!("{}(range({huge}))", one(dice, &["list", "tuple", "sorted", "reversed"])), MEMORY),
        3 => (format!("list({}(range({huge})))", one(dice, &["enumerate", "reversed"])), MEMORY),
        4 => (format!("list(zip(range({huge}), range({huge})))"), MEMORY),
        5 => (format!("[{} for x in range({huge})]", one(dice, &["x", "[x]", "(x, x)", "str(x)", "{x: x}"])), MEMORY),
        6 => (format!("{{x: {} for x in range({huge})}}", one(dice, &["x", "[x]", "'v'", "{x: x}"])), MEMORY),
        7 => (format!("[[y for y in range({some})] for x in range({huge})]"), MEMORY),
        // Texts.
        8 => (format!("{}.join(['x' * {some}] * {some})", one(dice, &["','", "''", "'--'"])), MEMORY),
        9 => (format!("('a' * {some}).replace('a', 'b' * {some})"), MEMORY),
        10 => (format!("'{}'.format('a' * {})", "{0}".repeat(8), some * 60), MEMORY),
        11 => (format!("'{}' % tuple(['a' * {}] * 8)", "%s".repeat(8), some * 60), MEMORY),
        12 => (format!("('a,' * {}).split(',')", some * 100), MEMORY),
        13 => (format!("list(('ab' * {}).{}())", some * 100, one(dice, &["elems", "codepoints"])), MEMORY),
        14 => (format!("json.decode('[' + '0,' * {} + '0]')", some * 100), MEMORY),
        // Work that nothing comes of.
        15 => (format!("[x for x in range({huge}) if x < 0]"), CPU),
        16 => {
            let items = between(dice, 1_000, 5_000);
            let key = format!("lambda x: len([y for y in range({some}) if y < 0])");
            (format!("{}(range({items}), key = {key})", one(dice, &["sorted", "max", "min"])), CPU)
        }
        _ => (
            format!("{}([x < 0 for x in range(1000) for y in range({huge}) if y < 0])", one(dice, &["any", "all"])),
            CPU,
        ),
    }
}

fn statements(kind: u64, dice: &mut Dice) -> (String, &'static [&'static str]) {
    let times = between(dice, 60, 200);
    let deep = between(dice, 100_000, 1_000_000);
    let nested = |start: &str, around: &str, then: &str| {
        format!("    a = {start}\n    for _i in range({deep}):\n        a = {around}\n    {then}")
    };
    match kind {
        18 => {
            let step = one(
                dice,
                &[
                    "s = s + s",
                    "s += s",
                    "s = s * 3",
                    "s = s + 'x' + s",
                    "s = '%s%s' % (s, s)",
                    "s = repr(s) + repr(s)",
                ],
            );
            (
                format!(
                    "    s = '{}'\n    for _i in range({times}):\n        {step}\n    return len(s)",
                    "a".repeat(usize::try_from(times).unwrap())
                ),
                MEMORY,
            )
        }
        19 => {
            let step = one(
                dice,
                &[
                    "a = a + a",
                    "a.extend(list(a))",
                    "a = [a, a] + a + a",
                    "a = a * 2",
                    "a = a[:] + a[:]",
                    "a = [x for x in a + a]",
                ],
            );
            (format!("    a = [0, 1]\n    for _i in range({times}):\n        {step}\n    return len(a)"), MEMORY)
        }
        20 => {
            let step = one(dice, &["n = n * n", "n = n * n + 1", "n = n * 3 * n", "n = (n + 1) * (n - 1)"]);
            (format!("    n = 3\n    for _i in range({}):\n        {step}\n    return n", times * 100), EITHER)
        }
        // Loops in loops. What they make is not taken back before the call ends, so it may be the memory that is used up.
        21 => {
            let levels = usize::try_from(between(dice, 2, 6)).unwrap();
            let lines: String = (0..levels)
                .map(|level| format!("{}for i{level} in range(2000000000):\n", "    ".repeat(level + 1)))
                .collect();
            let inner = one(dice, &["pass", "x = i0 + 1", "x = i0 * 2 % 7", "x = [i0] * 50", "x = {i0: [1] * 20}"]);
            (format!("{lines}{}{inner}", "    ".repeat(levels + 1)), EITHER)
        }
        22 => {
            let step = one(
                dice,
                &[
                    "a.append(i)\n        a.pop()",
                    "d[i % 10] = i",
                    "f(i)",
                    "s = s[1:] + 'x' * 1000",
                    "x = sorted(a * 100)",
                    "x = 'aaaab' in 'a' * 10000",
                ],
            );
            let before = "    f = lambda x: x + 1\n    a = [3, 1, 2]\n    d = {}\n    s = 'abc'";
            (format!("{before}\n    for i in range(2000000000):\n        {step}"), EITHER)
        }
        // What is given back.
        23 => (format!("    return 'a' * {}", between(dice, 6_400_000, 9_000_000)), OUTPUT),
        24 => {
            let share = between(dice, 500, 1_500);
            (
                format!(
                    "    a = ['x' * {share}] * {share}\n    b = [a] * {share}\n    return {}",
                    one(dice, &["b", "[b] * 1000", "{'a': b, 'b': b}"])
                ),
                OUTPUT,
            )
        }
        25 => {
            (nested(one(dice, &["[]", "{}", "1"]), one(dice, &["[a]", "{'a': a}", "(a,)", "[1, a]"]), "return a"), DEEP)
        }
        26 => {
            let then = one(
                dice,
                &[
                    "return len(str(a))",
                    "return len(repr(a))",
                    "return len(json.encode(a))",
                    "return {a: 1}",
                    "return a == a[0]",
                    "return sorted([a, a[0]])",
                    "return a < a[0]",
                    "return a in [a[0]]",
                ],
            );
            (nested("(1,)", "(a,)", then), DEEP)
        }
        27 => {
            let own = one(
                dice,
                &["a = []\n    a.append(a)", "a = {}\n    a['a'] = a", "a = [1]\n    b = [a]\n    a.append(b)"],
            );
            (format!("    {own}\n    {}", one(dice, &["return a", "return json.encode(a)", "return [a] * 3"])), DEEP)
        }
        // Lines are counted and left out. The loop ends before what it makes is too much.
        _ => {
            let (length, lines) = (between(dice, 1, 100_000), between(dice, 5_000, 20_000));
            (format!("    line = 'x' * {length}\n    for i in range({lines}):\n        ctx.log(line)"), NONE)
        }
    }
}

fn whole(kind: u64, dice: &mut Dice) -> (String, &'static [&'static str]) {
    let main = |body: &str| format!("def main(ctx, input):\n    return {body}\n");
    let many = usize::try_from(between(dice, 3_000, 15_000)).unwrap();
    match kind {
        29 => {
            let call = one(
                dice,
                &[
                    "f(n + 1)",
                    "[f(n + 1) for _i in [1]]",
                    "sorted([2, 1], key = lambda x: f(n + 1))",
                    "list(map(f, [n + 1]))",
                    "g(n)",
                    "max([1, 2], key = lambda x: f(n))",
                    "(lambda: f(n + 1))()",
                ],
            );
            (
                format!(
                    "def g(n):\n    return f(n + 1)\ndef f(n):\n    return {call}\ndef main(ctx, input):\n    return f(0)\n"
                ),
                CALLS,
            )
        }
        30 => {
            let n = between(dice, 40, 90);
            let work = one(dice, &["f(n - 1) + f(n - 2)", "f(n - 1) + f(n - 1)", "f(n - 1) * f(n - 2) % 7"]);
            (
                format!(
                    "def f(n):\n    if n < 2:\n        return 1\n    return {work}\ndef main(ctx, input):\n    return f({n})\n"
                ),
                CPU,
            )
        }
        // Sources that are hard to read.
        31 => {
            let (open, close) = one(
                dice,
                &[
                    ("(", ")"),
                    ("[", "]"),
                    ("{1:", "}"),
                    ("f(", ")"),
                    ("(1,", ")"),
                    ("[1 for x in ", "]"),
                    ("not ", ""),
                    ("-", ""),
                    ("1+", ""),
                    ("1 if 1 else ", ""),
                    ("lambda: ", ""),
                    ("1 and ", ""),
                    ("~", ""),
                    ("1<", ""),
                    ("'a'+", ""),
                ],
            );
            let many = many.min(60_000 / (open.len() + close.len()));
            let middle = if open.starts_with("[1 for") { "[1]" } else { "1" };
            (main(&format!("{}{middle}{}", open.repeat(many), close.repeat(many))), DEEP)
        }
        32 => {
            let tail = one(dice, &[".a", "[0]", "()", "[0:1]", "(1)"]);
            (main(&format!("input{}", tail.repeat(many))), DEEP)
        }
        33 => {
            let head = one(dice, &["if True:", "for _i in [1]:", "def f():"]);
            let levels = usize::try_from(between(dice, 50, 250)).unwrap();
            let lines: String = (0..levels).map(|level| format!("{}{head}\n", " ".repeat(level + 1))).collect();
            (format!("def main(ctx, input):\n{lines}{}pass\n", " ".repeat(levels + 1)), DEEP)
        }
        34 => {
            let filler = one(dice, &["#", "x", "\n", "(", "'"]);
            (filler.repeat(usize::try_from(between(dice, 66_000, 300_000)).unwrap()), &["source_bytes"])
        }
        // What a program has no way to.
        _ => {
            let wish = one(
                dice,
                &[
                    "open('/etc/passwd')",
                    "eval('1')",
                    "exec('1')",
                    "__import__('os')",
                    "getattr(ctx, '__class__')",
                    "ctx.__dict__",
                    "globals()",
                    "input.__class__",
                    "print.__self__",
                    "dir(ctx)[9999]",
                    "ctx.http('GET', 'file:///etc/passwd')",
                    "ctx.http('GET', 'http://169.254.169.254/')",
                    "ctx.secret('x') + 1",
                    "1 // 0",
                    "[][1]",
                    "fail('x' * 1000000)",
                    "'abc'.nothing()",
                    "ctx.step(1, 2, 3, 4)",
                ],
            );
            (main(wish), NONE)
        }
    }
}
