//! Operations on entrypoints.

use servo_model::TenantId;

use super::super::entrypoints::EntrypointOp;
use super::World;
use crate::entrypoints::{EntrypointOrder, EntrypointQuery, EntrypointRow};
use crate::runs::Scope;
use crate::testkit::fixtures::tenant;

const IDS: [&str; 3] = ["ep_1", "ep_a2", "EP-b3"];
const ADDRESSES: [&str; 3] = ["gts.a.v1~", "gts.B.v1~", "gts.a.v2~"];
const OWNER_TYPES: [&str; 3] = ["user", "tenant", "system"];
const OWNER_IDS: [&str; 2] = ["ann", "bob"];
const STATUSES: [&str; 3] = ["draft", "active", "archived"];
const ADAPTERS: [&str; 2] = ["starlark", "lambda"];
const TAGS: [&str; 3] = ["a", "B", "c"];

/// Mostly one tenant, and the system's, so that operations meet within one sequence.
fn owner(world: &mut World<'_>) -> TenantId {
    match world.rng.below(8) {
        0 => world.any_tenant(),
        1 | 2 => TenantId::system(),
        _ => tenant("acme"),
    }
}

fn scope(world: &mut World<'_>) -> Scope {
    if world.rng.one_in(3) { Scope::System } else { Scope::Tenant(owner(world)) }
}

fn some(world: &mut World<'_>, times: u64, texts: &[&'static str]) -> Option<String> {
    if world.rng.one_in(times) { Some(texts[world.rng.below(texts.len() as u64) as usize].to_owned()) } else { None }
}

fn tags(world: &mut World<'_>) -> Vec<String> {
    TAGS.iter().filter(|_| world.rng.one_in(2)).map(|tag| (*tag).to_owned()).collect()
}

fn row(world: &mut World<'_>) -> EntrypointRow {
    let tenant = owner(world);
    // Most rows of the system are shared: others show nothing to anybody.
    let is_shared = tenant == TenantId::system() && !world.rng.one_in(4);
    EntrypointRow {
        id: world.rng.pick(&IDS).to_owned(),
        tenant,
        owner_type: if is_shared { "system" } else { world.rng.pick(&OWNER_TYPES) }.to_owned(),
        owner_id: world.rng.pick(&OWNER_IDS).to_owned(),
        address: world.rng.pick(&ADDRESSES).to_owned(),
        version: world.rng.pick(&["1.0.0", "1.1.0"]).to_owned(),
        status: world.rng.pick(&STATUSES).to_owned(),
        adapter: world.rng.pick(&ADAPTERS).to_owned(),
        title: format!("title {}", world.rng.below(3)),
        tags: tags(world),
        document: format!("{{\"n\":{}}}", world.rng.below(100)),
        created_at: world.near(),
        updated_at: world.near(),
        revision: 1 + world.rng.below(3),
    }
}

fn query(world: &mut World<'_>) -> EntrypointQuery {
    let order = world.rng.pick(&[EntrypointOrder::Created, EntrypointOrder::Updated, EntrypointOrder::Address]);
    let after = if world.rng.one_in(3) { Some(order.key(&row(world))) } else { None };
    EntrypointQuery {
        address: some(world, 8, &ADDRESSES),
        address_prefix: some(world, 6, &["gts.a", "gts.", "x"]),
        statuses: some(world, 5, &STATUSES).into_iter().chain(some(world, 5, &STATUSES)).collect(),
        exclude_archived: world.rng.one_in(3),
        owner_type: some(world, 8, &OWNER_TYPES),
        owner_id: some(world, 8, &OWNER_IDS),
        subject: some(world, 3, &OWNER_IDS),
        adapter: some(world, 6, &ADAPTERS),
        tags: if world.rng.one_in(4) { tags(world) } else { Vec::new() },
        order,
        ascending: world.rng.one_in(2),
        after,
        limit: world.limit(),
    }
}

/// The row of the model with the same id, so that changes mostly name the right revision.
async fn standing(world: &mut World<'_>, row: &EntrypointRow) -> u64 {
    let scope = Scope::Tenant(row.tenant.clone());
    let found = world.model.get_entrypoint(&scope, &row.id).await.ok().flatten();
    if world.rng.one_in(5) { row.revision } else { found.map_or(row.revision, |found| found.revision) }
}

pub(super) async fn next(world: &mut World<'_>) -> EntrypointOp {
    let row = row(world);
    match world.rng.below(14) {
        0..=4 => EntrypointOp::Put { row },
        5 => EntrypointOp::Get { scope: scope(world), id: row.id },
        6 => EntrypointOp::Find { tenant: owner(world), address: row.address },
        7..=8 => {
            let revision = standing(world, &row).await;
            EntrypointOp::Update { row: EntrypointRow { revision, ..row } }
        }
        9 => {
            let revision = standing(world, &row).await;
            EntrypointOp::Remove { tenant: row.tenant, id: row.id, revision }
        }
        10..=12 => EntrypointOp::List { scope: scope(world), query: query(world) },
        _ => EntrypointOp::Count { tenant: owner(world) },
    }
}
