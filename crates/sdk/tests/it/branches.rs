//! Branches of map and parallel: their names, serdes and nesting.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::Value;
use servo_sdk::{
    BatchItemStatus, DurableContext, DurableError, Duration, ItemBatcher, MapConfig, Nesting, ParallelConfig, SerDes,
    SerDesContext, SerDesError, branch,
};

use crate::service::World;

/// Puts a mark before what is recorded.
struct Marked(&'static str);

impl SerDes<Value> for Marked {
    fn serialize(&self, value: &Value, _: &SerDesContext) -> Result<String, SerDesError> {
        Ok(format!("{}{value}", self.0))
    }

    fn deserialize(&self, data: &str, _: &SerDesContext) -> Result<Value, SerDesError> {
        let data = data.strip_prefix(self.0).ok_or_else(|| SerDesError::Deserialization("no mark".to_owned()))?;
        serde_json::from_str(data).map_err(|error| SerDesError::Deserialization(error.to_string()))
    }
}

fn recorded(world: &World, name: &str) -> String {
    world.named(name).context_details.unwrap().result.unwrap()
}

#[test]
fn items_and_branches_have_the_names_they_are_given() {
    let world = World::new("null");
    let report = world.run(async |_: (), ctx: DurableContext| {
        let item_namer = Some(Arc::new(|item: &Value, index: usize| format!("{item} at {index}")) as _);
        ctx.map(vec![7, 8], |_, item: u32, _| Ok(item), Some(MapConfig { item_namer, ..MapConfig::default() })).await?;
        let config = ParallelConfig { branch_names: vec!["left".to_owned()], ..ParallelConfig::default() };
        ctx.parallel(vec![branch(|_| Ok(1_u32)), branch(|_| Ok(2))], Some(config)).await?;
        Ok(())
    });
    assert_eq!(report.result.as_deref(), Some("null"), "{report:?}");
    for (name, result) in [("7 at 0", "7"), ("8 at 1", "8"), ("left", "1"), ("parallel-branch-1", "2")] {
        assert_eq!(recorded(&world, name), result);
    }
}

#[test]
fn items_have_a_serdes_of_their_own() {
    let world = World::new("null");
    let report = world.run(async |_: (), ctx: DurableContext| {
        let config = MapConfig {
            name: Some("both".to_owned()),
            serdes: Some(Arc::new(Marked("whole:"))),
            item_serdes: Some(Arc::new(Marked("item:"))),
            ..MapConfig::default()
        };
        let batch = ctx.map(vec![1], |_, item: u32, _| Ok(item + 1), Some(config)).await?;
        ctx.wait(Duration::from_seconds(1), None).await?;
        Ok(batch.items[0].result)
    });
    assert_eq!(report.result.as_deref(), Some("2"));
    assert_eq!(recorded(&world, "map-item-0"), "item:2");
    assert!(recorded(&world, "both").starts_with("whole:{"));
}

/// A flat item is no operation: what it does lies under the map, and each keeps its own ids across invocations.
#[test]
fn flat_items_record_under_the_map() {
    let bodies = AtomicUsize::new(0);
    let world = World::new("null");
    let report = world.run(async |_: (), ctx: DurableContext| {
        let config = MapConfig { name: Some("flat".to_owned()), nesting: Nesting::Flat, ..MapConfig::default() };
        let body = async |child: DurableContext, item: u32, _| {
            let value = child
                .step(
                    |_| {
                        bodies.fetch_add(1, Ordering::SeqCst);
                        Ok(item * 10)
                    },
                    None,
                )
                .await?;
            child.wait(Duration::from_seconds(u64::from(item)), None).await?;
            if item == 2 { Err(DurableError::user("Two", "no two").into()) } else { Ok(value) }
        };
        let batch = ctx.map(vec![1_u32, 2, 3], body, Some(config)).await?;
        assert_eq!((batch.status(), batch.failed()[0].index), (BatchItemStatus::Failed, 1));
        assert_eq!(batch.throw_if_errors().unwrap_err().error_type(), "Two");
        ctx.wait(Duration::from_seconds(5), None).await?;
        Ok(batch.items.into_iter().map(|item| item.result).collect::<Vec<_>>())
    });
    assert_eq!(report.result.as_deref(), Some("[10,null,30]"), "{report:?}");
    assert_eq!(bodies.load(Ordering::SeqCst), 3);
    let map = world.named("flat").id;
    let operations = world.operations();
    assert!(operations.iter().all(|operation| operation.sub_type.as_deref() != Some("MapIteration")));
    assert_eq!(operations.iter().filter(|operation| operation.parent_id.as_ref() == Some(&map)).count(), 6);
}

#[test]
fn a_flat_map_has_no_groups() {
    let world = World::new("null");
    let report = world.run(async |_: (), ctx: DurableContext| {
        let item_batcher = Some(ItemBatcher { max_items_per_batch: 2, max_bytes_per_batch: 100 });
        let config = MapConfig { item_batcher, nesting: Nesting::Flat, ..MapConfig::default() };
        let refused = ctx.map(vec![1], |_, item: u32, _| Ok(item), Some(config)).await;
        Ok(refused.is_err_and(|error| error.error_type() == "ValidationError"))
    });
    assert_eq!(report.result.as_deref(), Some("true"));
}
