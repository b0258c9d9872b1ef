//! Operations on functions and log lines.

use super::super::functions::{ALIASES, FUNCTIONS, FunctionOp, alias, function, line};
use super::{RUNS, TENANTS, World, streams};
use crate::lines::LineSource;
use crate::testkit::fixtures::{run_id, tenant};

/// Publishing is the most frequent: without functions the rest shows nothing.
pub(super) fn next(world: &mut World<'_>) -> FunctionOp {
    let mostly_first = |world: &mut World<'_>, names: &[&'static str]| {
        if world.rng.one_in(4) { names[world.rng.below(names.len() as u64) as usize] } else { names[0] }
    };
    // Mostly the same ones, so that operations meet within one sequence.
    let (tenant, name) = (tenant(mostly_first(world, &TENANTS)), function(mostly_first(world, &FUNCTIONS)));
    let alias = alias(mostly_first(world, &ALIASES));
    let run = mostly_first(world, &RUNS);
    match world.rng.below(24) {
        0..=4 => {
            let document = format!("{{\"b\": {}, \"a\": null}}", world.rng.below(3));
            FunctionOp::Put { tenant, name, document }
        }
        5 => {
            let version = if world.rng.one_in(2) { Some(world.rng.below(3)) } else { None };
            FunctionOp::Get { tenant, name, version }
        }
        6 => {
            let after = if world.rng.one_in(2) { Some((tenant, name)) } else { None };
            FunctionOp::List { scope: world.scope(), after, limit: world.limit() }
        }
        7 => {
            let before = if world.rng.one_in(2) { Some(world.rng.below(4)) } else { None };
            FunctionOp::Versions { tenant, name, before, limit: world.limit() }
        }
        8 => FunctionOp::Remove { tenant, name },
        9..=11 => FunctionOp::PutAlias { tenant, name, alias, version: 1 + world.rng.below(2) },
        12 | 18 | 19 => FunctionOp::GetAlias { tenant, name, alias },
        13 | 23 => FunctionOp::Aliases { tenant, name },
        14 => FunctionOp::RemoveAlias { tenant, name, alias },
        15 | 20..=22 => {
            let after = world.rng.below(3);
            FunctionOp::ReadLines { scope: world.scope(), run_id: run_id(run), after, limit: world.limit() }
        }
        _ => {
            let index = RUNS.iter().position(|name| *name == run).unwrap_or(0);
            let tenant = if world.rng.one_in(8) { tenant } else { streams::tenant_of(index) };
            let run_id = run_id(run);
            let mut lines = Vec::new();
            for _ in 0..world.rng.below(4) {
                let (at, source) = (world.near(), world.rng.pick(&LineSource::ALL));
                // Now and then one that is cut.
                let text = if world.rng.one_in(3) { "x".repeat(70_000) } else { format!("{}", world.rng.below(100)) };
                lines.push(line(at, source, text));
            }
            FunctionOp::PutLines { run_id, tenant, lines }
        }
    }
}
