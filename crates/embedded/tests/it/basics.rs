//! What a program can ask of the engine inside it.

use serde_json::json;
use servo_embedded::{Error, ListQuery, PageQuery, Servo, Start};
use servo_sdk::{DurableContext, DurableError, ErrorObject, WaitForCallbackConfig};
use servo_wire::lambda::ExecutionStatus;
use tokio::sync::mpsc;

async fn double(number: u64, ctx: DurableContext) -> Result<u64, DurableError> {
    ctx.step(|_| Ok(number * 2), None).await
}

async fn quadruple(number: u64, ctx: DurableContext) -> Result<u64, DurableError> {
    let twice: u64 = ctx.invoke("double", number, None).await?;
    ctx.invoke("double", twice, None).await
}

async fn stubborn(_: (), ctx: DurableContext) -> Result<(), DurableError> {
    ctx.create_callback::<()>(None).await?.result().await
}

/// DX-001: the published example runs on the embedded engine.
#[tokio::test]
async fn the_usage_example_runs() {
    let servo = Servo::builder().in_memory().function("process_order", crate::usage_example::on_json);
    let servo = servo.start().await.unwrap();
    let order = json!({"order_id": "o-1", "amount": 12.5});
    let result: serde_json::Value = servo.call("process_order", &order).await.unwrap();
    let expected = json!({
        "status": "completed", "order_id": "o-1", "transaction_id": "txn_123", "tracking_number": "TRK123456",
    });
    assert_eq!(result, expected);
    servo.shutdown().await;
}

#[tokio::test]
async fn functions_invoke_each_other() {
    let builder = Servo::builder().in_memory().function("double", double).function("quadruple", quadruple);
    let servo = builder.start().await.unwrap();
    assert_eq!(servo.call::<u64>("quadruple", &5).await.unwrap(), 20);
    servo.shutdown().await;
}

#[tokio::test]
async fn a_typing_error_in_a_name_says_what_there_is() {
    let servo = Servo::builder().in_memory().function("double", double).function("quadruple", quadruple);
    let servo = servo.start().await.unwrap();
    let error = servo.call::<u64>("duble", &5).await.unwrap_err();
    assert_eq!(error.to_string(), "no function `duble`; this program has: double, quadruple");
    servo.shutdown().await;
}

#[tokio::test]
async fn mistakes_are_told_at_the_start() {
    let nothing = Servo::builder().function("double", double).start().await.unwrap_err();
    assert!(nothing.to_string().contains("no store was chosen"), "{nothing}");
    let twice = Servo::builder().in_memory().function("double", double).function("double", double);
    let twice = twice.start().await.unwrap_err();
    assert!(twice.to_string().contains("`double` is registered twice"), "{twice}");
    let wrong = Servo::builder().in_memory().function("not a name", double).start().await.unwrap_err();
    assert!(wrong.to_string().contains("function `not a name`"), "{wrong}");
}

#[tokio::test]
async fn the_same_name_starts_one_execution() {
    let servo = Servo::builder().in_memory().function("double", double).start().await.unwrap();
    let start = Start::with(&4).unwrap().named("only-one");
    let first = servo.start("double", start.clone()).await.unwrap();
    let second = servo.start("double", start).await.unwrap();
    assert_eq!((first.is_new(), second.is_new(), first.arn()), (true, false, second.arn()));
    assert_eq!(second.result::<u64>().await.unwrap(), 8);
    let other = servo.start("double", Start::with(&5).unwrap().named("only-one")).await.unwrap_err();
    assert!(other.to_string().contains("another payload"), "{other}");
    servo.shutdown().await;
}

#[tokio::test]
async fn a_callback_is_answered_by_the_program() {
    let (sender, mut ids) = mpsc::unbounded_channel::<String>();
    let handler = move |_: (), ctx: DurableContext| {
        let sender = sender.clone();
        async move {
            let config = WaitForCallbackConfig { name: Some("approval".into()), ..WaitForCallbackConfig::default() };
            let submit = |_, id: String| Ok(sender.send(id)?);
            ctx.wait_for_callback::<String, _, _, _>(submit, Some(config)).await
        }
    };
    let servo = Servo::builder().in_memory().function("approve", handler).start().await.unwrap();
    let good = servo.start("approve", Start::default()).await.unwrap();
    let id = ids.recv().await.unwrap();
    servo.callback_heartbeat(&id).await.unwrap();
    servo.callback_succeed(&id, &"yes").await.unwrap();
    assert_eq!(good.result::<String>().await.unwrap(), "yes");
    let bad = servo.start("approve", Start::default()).await.unwrap();
    servo.callback_fail(&ids.recv().await.unwrap(), ErrorObject::new("Denied", "no")).await.unwrap();
    let error = bad.result::<String>().await.unwrap_err();
    let Error::Ended(ended) = error else { panic!("{error}") };
    assert_eq!(ended.status, ExecutionStatus::Failed);
    assert!(servo.callback_succeed("nonsense", &1).await.is_err());
    servo.shutdown().await;
}

#[tokio::test]
async fn an_execution_can_be_stopped_and_looked_at() {
    let servo = Servo::builder().in_memory().function("stubborn", stubborn).function("double", double);
    let servo = servo.start().await.unwrap();
    let running = servo.start("stubborn", Start::default()).await.unwrap();
    servo.stop(running.arn(), ErrorObject::new("Tired", "enough")).await.unwrap();
    let Err(Error::Ended(ended)) = running.result::<()>().await else { panic!("it was stopped") };
    assert_eq!(ended.status, ExecutionStatus::Stopped);
    assert_eq!(ended.to_string(), "the execution ended as STOPPED with Tired: enough");
    assert_eq!(servo.get(running.arn()).await.unwrap().status, ExecutionStatus::Stopped);
    let listed = servo.list("stubborn", &ListQuery::default(), PageQuery::default()).await.unwrap();
    assert_eq!(listed.durable_executions.len(), 1);
    let history = servo.history(running.arn(), PageQuery::default()).await.unwrap();
    assert!(history.events.len() >= 2, "{history:?}");
    servo.shutdown().await;
}
