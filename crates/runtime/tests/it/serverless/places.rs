//! How many invocations of an entrypoint run at a time, beside others over the same function and for tenants that share it.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use servo_entrypoint::{
    EntrypointStatusAction, InvocationControlAction as Action, InvocationStatus as S, ServerlessRuntime as _,
};
use servo_model::function::{FunctionSpec, Reach};
use servo_model::{FunctionName, Role, SecurityContext, TenantId};

use super::support::{Bed, FUNCTION, caller, definition, request};
use crate::executions::handler::start as call;

/// SR-030, SR-038: what refers to the same function has places of its own, and so have calls of the function itself.
#[test]
fn entrypoints_over_one_function_do_not_take_each_others_places() {
    let bed = Bed::new(30);
    let limit = |most: u32| move |document: &mut Value| document["traits"]["limits"]["max_concurrent"] = most.into();
    let narrow = bed.entrypoint(FUNCTION, "shared", limit(1), |_| std::future::pending());
    let mut document = definition(FUNCTION, "wide");
    document["implementation"]["adapter_ref"]["definition_id"] = "shared".into();
    limit(100)(&mut document);
    let wide = bed.register(&document).unwrap().entrypoint_id;
    bed.act(&wide, EntrypointStatusAction::Activate).unwrap();
    let start = |address: &str| bed.start(address, json!({})).unwrap().record.invocation_id;
    let called: Vec<_> = (0..3).map(|_| start(&wide)).collect();
    call(&bed.world, bed.node(), "shared", None, "{}").unwrap();
    let (first, second) = (start(&narrow), start(&narrow));
    let later = start(&wide);
    bed.world.pass(Duration::from_secs(5));
    let running = called.iter().chain([&first, &later]);
    assert!(running.into_iter().all(|id| bed.get(id).status == S::Running), "the places of one are not the other's");
    assert_eq!(bed.get(&second).status, S::Queued);
    assert_eq!(bed.functions.invocations(), 6);
    bed.control(&called[0], Action::Cancel).unwrap();
    bed.world.pass(Duration::from_secs(5));
    assert_eq!(bed.get(&second).status, S::Queued, "a place of the other is none of its own");
    bed.control(&first, Action::Cancel).unwrap();
    bed.until(&second, S::Running);
}

/// How many run now, how many ever did at once, and whose they were.
#[derive(Default)]
struct Busy {
    now: AtomicU32,
    peak: AtomicU32,
    tenants: Mutex<Vec<String>>,
}

struct Inside(Arc<Busy>);

impl Inside {
    fn new(busy: &Arc<Busy>, tenant: &TenantId) -> Self {
        busy.peak.fetch_max(busy.now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        busy.tenants.lock().unwrap().push(tenant.to_string());
        Self(busy.clone())
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        self.0.now.fetch_sub(1, Ordering::SeqCst);
    }
}

/// An entrypoint of the platform that one invocation may run of, which takes so long.
fn shared(bed: &Bed, takes: Duration) -> (String, Arc<Busy>) {
    let busy = Arc::new(Busy::default());
    let noted = busy.clone();
    bed.functions.answer("common", move |call| {
        let busy = noted.clone();
        async move {
            let _inside = Inside::new(&busy, &call.call.tenant);
            call.executions.engine().clock().sleep(takes).await;
            Ok("{}".to_owned())
        }
    });
    let spec = FunctionSpec { durable: false, ..FunctionSpec::new(Reach::InProcess) };
    let (store, spec) = (bed.world.store(), serde_json::to_string(&spec).unwrap());
    let name = FunctionName::parse("common").unwrap();
    bed.world.block_on(async move { store.put_function(&TenantId::system(), &name, &spec).await }).unwrap();
    let platform = SecurityContext { roles: vec![Role::PlatformAdmin], ..caller("root", "default") };
    let mut document = definition(FUNCTION, "common");
    document["owner"] = json!({"owner_type": "system", "id": "platform", "tenant_id": "default"});
    document["traits"]["limits"]["max_concurrent"] = 1.into();
    let address = bed.register_as(&platform, &document).unwrap().entrypoint_id;
    let active = address.clone();
    bed.run(|serverless| async move {
        serverless.update_entrypoint_status(&platform, &active, EntrypointStatusAction::Activate).await
    })
    .unwrap();
    (address, busy)
}

fn start_of(bed: &Bed, tenant: &str, address: &str, count: usize) {
    for _ in 0..count {
        bed.start_as(&caller("ann", tenant), request(address, json!({}))).unwrap();
    }
}

/// SR-030: the limit of an entrypoint is one for all who call it, also after a crash, and whoever waits for it takes turns.
#[test]
fn tenants_share_the_places_of_an_entrypoint_of_the_platform() {
    let mut bed = Bed::new(31);
    let (address, busy) = shared(&bed, Duration::from_secs(1));
    for tenant in ["acme", "other"] {
        start_of(&bed, tenant, &address, 6);
    }
    let served = |count: usize| busy.tenants.lock().unwrap().len() >= count;
    bed.world.wait_until("some are called", || served(5));
    bed.crash();
    bed.world.wait_until("all are called", || served(13));
    bed.world.pass(Duration::from_secs(30));
    let tenants = busy.tenants.lock().unwrap().clone();
    assert_eq!((tenants.len(), busy.peak.load(Ordering::SeqCst)), (13, 1), "{tenants:?}");
    // The first one found nobody before it; the one that was lost is called again.
    let row = tenants.windows(4).take(7).find(|row| row.iter().all(|tenant| *tenant == row[0]));
    assert_eq!(row, None, "{tenants:?}");
}

/// R19: also if one of them has so many waiting that they are not walked over for every place.
#[test]
fn a_flood_does_not_keep_the_places_of_a_shared_entrypoint() {
    let bed = Bed::with(32, |platform| platform.policy.quotas.max_concurrent_executions = 1_000);
    let (address, busy) = shared(&bed, Duration::from_millis(10));
    start_of(&bed, "acme", &address, 400);
    start_of(&bed, "zeta", &address, 5);
    let before = busy.tenants.lock().unwrap().len();
    let served = |tenant: &str| {
        let tenants = busy.tenants.lock().unwrap();
        tenants.iter().skip(before).filter(|served| *served == tenant).count()
    };
    bed.world.wait_until("all of the quiet one are called", || served("zeta") == 5);
    assert!(served("acme") <= 8, "{} of the flood meanwhile", served("acme"));
    assert_eq!(busy.peak.load(Ordering::SeqCst), 1);
}
