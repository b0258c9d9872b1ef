//! A runtime over the reference store with the bus under test.

use std::sync::Arc;

use serde_json::json;
use serde_json::value::RawValue;
use servo_adapter::mock::Mock;
use servo_model::ids::Name;
use servo_model::limits::Limits;
use servo_model::plan::RunContext;
use servo_model::{PlanId, PlanRef, TenantId};
use servo_runtime::engine::StartRequest;
use servo_runtime::{Bus, Clock, Ids, Parts, Runtime, RuntimeConfig, SystemClock, Tasks, Types};
use servo_store::mem::MemStore;
use servo_store::{Position, Scope, Store};

pub(crate) struct World {
    runtime: Runtime,
    store: Arc<dyn Store>,
}

impl World {
    pub(crate) async fn start(bus: Arc<dyn Bus>) -> Self {
        let store: Arc<dyn Store> = Arc::new(MemStore::new(Arc::new(|| SystemClock.now()), Limits::default(), [1; 32]));
        let mut config = RuntimeConfig { poll_ms: 20, ..RuntimeConfig::default() };
        config.outbox.backoff_max_ms = 200;
        let parts = Parts {
            store: store.clone(),
            clock: Arc::new(SystemClock),
            ids: Arc::new(Ids::from_os()),
            tasks: Tasks::on_tokio(),
            bus,
            adapters: vec![Arc::new(Mock)],
            handlers: Arc::new(servo_adapter::handler::NoHandlers),
            spans: None,
            types: Types::published(),
            config,
        };
        let runtime = Runtime::start(parts).await.unwrap();
        Self { runtime, store }
    }

    pub(crate) async fn run_to_end(&self) {
        let document = json!({"planId": "p", "planVersion": "1", "schemaVersion": "v1",
            "steps": [{"stepId": "a"}, {"stepId": "b", "dependsOn": ["a"]}]});
        let request = StartRequest {
            plan_ref: PlanRef {
                uri: "inline:plan".to_owned(),
                sha256: servo_canon::fingerprint(&document).unwrap(),
                schema_version: "v1".to_owned(),
                plan_id: PlanId::parse("p").unwrap(),
                plan_version: "1".to_owned(),
            },
            plan: RawValue::from_string(document.to_string()).unwrap(),
            context: RunContext {
                tenant_id: TenantId::default_tenant(),
                project_id: Name::parse("default").unwrap(),
                environment_id: Name::parse("default").unwrap(),
                triggered_by: None,
                trigger_source: None,
            },
            run_request_id: None,
            approval_required: false,
            not_before: None,
            subject: "test".to_owned(),
        };
        let engine = self.runtime.engine();
        let mut log = engine.wake().watch_log();
        let started = engine.start(request).await.unwrap();
        loop {
            log.mark_unchanged();
            let snapshot = engine.snapshot(&Scope::System, &started.run_id).await.unwrap();
            if snapshot.status.is_terminal() {
                return;
            }
            log.changed().await.unwrap();
        }
    }

    /// Every event of a run in the log, as (run, sequence), sorted.
    pub(crate) async fn events(&self) -> Vec<(String, u64)> {
        let page = self.store.read_log(Position::START, 100_000).await.unwrap();
        let runs = page.events.iter().filter(|event| !event.run_id.is_system());
        let mut events: Vec<_> = runs.map(|event| (event.run_id.to_string(), event.run_seq)).collect();
        events.sort();
        events
    }

    pub(crate) async fn stop(&self) {
        self.runtime.stop().await;
    }
}
