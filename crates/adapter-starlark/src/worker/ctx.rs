//! `ctx`, the first parameter of `main`: names, parameters and defaults. What they do is in `ops`.

use std::fmt;

use allocative::Allocative;
use servo_model::invocation::{ErrorCategory, Failure, errors};
use servo_model::limits::{LINE_BYTES_MAX, clip};
use servo_replay::SubType;
use starlark::any::ProvidesStaticType;
use starlark::collections::SmallMap;
use starlark::environment::{Methods, MethodsBuilder, MethodsStatic};
use starlark::eval::Evaluator;
use starlark::values::dict::DictRef;
use starlark::values::none::NoneType;
use starlark::values::{NoSerialize, StarlarkValue, Value, ValueLike as _, starlark_value};
use starlark::{starlark_module, starlark_simple_value};

use super::arguments::{count, given, optional_seconds, retry as retry_rule, seconds, text};
use super::op::{read_result, write_payload};
use super::ops::branches::{self, Group};
use super::ops::settle::settle;
use super::ops::step::{self, StepTerms};
use super::ops::{http as requests, numbers, wait};
use super::raised::{Raised, raise, wrong};
use super::secret::Secret;
use super::session::Session;
use super::{json, object};
use crate::protocol::{FromChild, HttpHead};

#[derive(Debug, ProvidesStaticType, NoSerialize, Allocative)]
pub(crate) struct Ctx;

starlark_simple_value!(Ctx);

impl fmt::Display for Ctx {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("<ctx>")
    }
}

#[starlark_value(type = "ctx")]
impl<'v> StarlarkValue<'v> for Ctx {
    fn get_methods() -> Option<&'static Methods> {
        static METHODS: MethodsStatic = MethodsStatic::new();
        METHODS.methods(methods)
    }
}

/// A list of anything that can be iterated.
fn items<'v>(what: &str, value: Value<'v>, eval: &Evaluator<'v, '_, '_>) -> starlark::Result<Vec<Value<'v>>> {
    let items = value.iterate(eval.heap()).map_err(|_| wrong(format!("{what} is a list, not {}", value.get_type())))?;
    Ok(items.take(branches::BRANCHES_MAX + 1).collect())
}

fn headers_of(value: Option<Value<'_>>) -> starlark::Result<Vec<(String, Vec<crate::protocol::Part>)>> {
    let Some(value) = given(value) else { return Ok(Vec::new()) };
    let value = value.downcast_ref::<object::Object<'_>>().map_or(value, object::Object::dict);
    let Some(dict) = DictRef::from_value(value) else { return Err(wrong("headers are a dict")) };
    let header = |(name, value): (Value<'_>, Value<'_>)| {
        let parts = name.unpack_str().zip(Secret::parts_of(value));
        let (name, parts) = parts.ok_or_else(|| wrong("names of headers are str, their values str or ctx.secret"))?;
        Ok((name.to_owned(), parts))
    };
    dict.iter().map(header).collect()
}

/// How a step is tried again, where there is a record of its tries.
fn terms(session: &Session, retry: Option<Value<'_>>, at_most_once: bool) -> starlark::Result<StepTerms> {
    if session.keeps_nothing() && (at_most_once || given(retry).is_some()) {
        return Err(wrong(
            "retry and at_most_once of a step need a record, and this workflow keeps none; it is tried again as a whole by its \
             own retry policy",
        ));
    }
    Ok(StepTerms { retry: retry_rule(retry, &session.head.retry)?, at_most_once })
}

#[starlark_module]
fn methods(builder: &mut MethodsBuilder) {
    fn step<'v>(
        #[starlark(this)] _this: Value<'v>,
        name: &str,
        r#fn: Value<'v>,
        args: Option<Value<'v>>,
        #[starlark(require = named)] retry: Option<Value<'v>>,
        #[starlark(require = named, default = false)] at_most_once: bool,
        #[starlark(require = named, default = false)] catch: bool,
        eval: &mut Evaluator<'v, '_, '_>,
    ) -> starlark::Result<Value<'v>> {
        let session = Session::of(eval)?;
        let terms = terms(session, retry, at_most_once)?;
        let arguments = match given(args) {
            Some(args) => items("args", args, eval)?,
            None => Vec::new(),
        };
        let outcome = step::run(eval, name, &terms, |eval| {
            let value = eval.eval_function(r#fn, &arguments, &[])?;
            write_payload(session, "the result of a step", value)
        });
        settle(eval, outcome, catch)
    }

    fn checkpoint<'v>(
        #[starlark(this)] _this: Value<'v>,
        eval: &mut Evaluator<'v, '_, '_>,
    ) -> starlark::Result<NoneType> {
        let session = Session::of(eval)?;
        if !session.is_durable() {
            return Err(wrong(
                "checkpoint works only in workflows: a function keeps nothing; register it as a workflow",
            ));
        }
        if session.is_in_step() {
            return Err(wrong("checkpoint does not work inside a step; call it in the workflow itself"));
        }
        if session.keeps_nothing() {
            return Err(wrong("this workflow keeps no checkpoints; register it with the strategy `manual`"));
        }
        session.flush()?;
        Ok(NoneType)
    }

    fn sleep<'v>(
        #[starlark(this)] _this: Value<'v>,
        duration: Value<'v>,
        #[starlark(require = named)] name: Option<Value<'v>>,
        eval: &mut Evaluator<'v, '_, '_>,
    ) -> starlark::Result<NoneType> {
        wait::sleep(Session::of(eval)?, seconds("a sleep", duration)?, text("name", name)?)?;
        Ok(NoneType)
    }

    fn wait_signal<'v>(
        #[starlark(this)] _this: Value<'v>,
        name: &str,
        timeout: Option<Value<'v>>,
        eval: &mut Evaluator<'v, '_, '_>,
    ) -> starlark::Result<Value<'v>> {
        wait::callback(eval, SubType::Signal, name, optional_seconds("timeout", timeout)?)
    }

    fn wait_event<'v>(
        #[starlark(this)] _this: Value<'v>,
        name: &str,
        timeout: Option<Value<'v>>,
        eval: &mut Evaluator<'v, '_, '_>,
    ) -> starlark::Result<Value<'v>> {
        wait::callback(eval, SubType::Event, name, optional_seconds("timeout", timeout)?)
    }

    fn invoke<'v>(
        #[starlark(this)] _this: Value<'v>,
        function: &str,
        params: Option<Value<'v>>,
        #[starlark(require = named)] timeout: Option<Value<'v>>,
        #[starlark(require = named)] name: Option<Value<'v>>,
        #[starlark(require = named, default = false)] catch: bool,
        eval: &mut Evaluator<'v, '_, '_>,
    ) -> starlark::Result<Value<'v>> {
        let params = params.unwrap_or_else(Value::new_none);
        let timeout = optional_seconds("timeout", timeout)?;
        let outcome = wait::invoke(eval, function, params, text("name", name)?, timeout);
        settle(eval, outcome, catch)
    }

    fn map<'v>(
        #[starlark(this)] _this: Value<'v>,
        items: Value<'v>,
        r#fn: Value<'v>,
        #[starlark(require = named)] max_concurrency: Option<Value<'v>>,
        #[starlark(require = named)] name: Option<Value<'v>>,
        #[starlark(require = named, default = false)] catch: bool,
        eval: &mut Evaluator<'v, '_, '_>,
    ) -> starlark::Result<Value<'v>> {
        let items = self::items("what is mapped", items, eval)?;
        let group = Group {
            kind: SubType::Map,
            name: text("name", name)?.map(str::to_owned),
            branches: items.into_iter().map(|item| (r#fn, vec![item])).collect(),
            max_concurrency: count("max_concurrency", max_concurrency)?,
            catch,
        };
        branches::run(eval, &group)
    }

    fn parallel<'v>(
        #[starlark(this)] _this: Value<'v>,
        fns: Value<'v>,
        #[starlark(require = named)] max_concurrency: Option<Value<'v>>,
        #[starlark(require = named)] name: Option<Value<'v>>,
        #[starlark(require = named, default = false)] catch: bool,
        eval: &mut Evaluator<'v, '_, '_>,
    ) -> starlark::Result<Value<'v>> {
        let functions = items("what runs in parallel", fns, eval)?;
        let group = Group {
            kind: SubType::Parallel,
            name: text("name", name)?.map(str::to_owned),
            branches: functions.into_iter().map(|function| (function, Vec::new())).collect(),
            max_concurrency: count("max_concurrency", max_concurrency)?,
            catch,
        };
        branches::run(eval, &group)
    }

    fn now<'v>(#[starlark(this)] _this: Value<'v>, eval: &mut Evaluator<'v, '_, '_>) -> starlark::Result<f64> {
        #[expect(clippy::cast_precision_loss, reason = "milliseconds of this era are far below 2^53")]
        let seconds = numbers::now(Session::of(eval)?)? as f64 / 1_000.0;
        Ok(seconds)
    }

    fn uuid<'v>(#[starlark(this)] _this: Value<'v>, eval: &mut Evaluator<'v, '_, '_>) -> starlark::Result<String> {
        Ok(numbers::uuid(Session::of(eval)?))
    }

    fn random<'v>(#[starlark(this)] _this: Value<'v>, eval: &mut Evaluator<'v, '_, '_>) -> starlark::Result<f64> {
        Ok(numbers::random(Session::of(eval)?))
    }

    fn log<'v>(
        #[starlark(this)] _this: Value<'v>,
        #[starlark(require = pos)] message: Value<'v>,
        #[starlark(kwargs)] fields: SmallMap<String, Value<'v>>,
        eval: &mut Evaluator<'v, '_, '_>,
    ) -> starlark::Result<NoneType> {
        let session = Session::of(eval)?;
        if session.is_replaying() {
            return Ok(NoneType);
        }
        let mut line = match message.unpack_str() {
            Some(text) => text[..text.floor_char_boundary(LINE_BYTES_MAX)].to_owned(),
            None => message.to_str(),
        };
        if !fields.is_empty() {
            let mut parts = vec![format!("\"message\":{}", serde_json::Value::from(line))];
            for (name, value) in &fields {
                let value = json::write(*value, LINE_BYTES_MAX)
                    .map_err(|_| wrong(format!("{name:?} cannot be logged; use values that have JSON")))?;
                parts.push(format!("{}:{value}", serde_json::Value::from(name.as_str())));
            }
            line = format!("{{{}}}", parts.join(","));
        }
        line.truncate(line.floor_char_boundary(LINE_BYTES_MAX));
        if session.may_log(line.len()) {
            session.link.borrow().send(&FromChild::Log, line.as_bytes());
        }
        Ok(NoneType)
    }

    fn emit<'v>(
        #[starlark(this)] _this: Value<'v>,
        name: &str,
        payload: Option<Value<'v>>,
        eval: &mut Evaluator<'v, '_, '_>,
    ) -> starlark::Result<NoneType> {
        let session = Session::of(eval)?;
        let payload = payload.unwrap_or_else(Value::new_none);
        step::instant(session, (SubType::Emit, name), || write_payload(session, "an event", payload))?;
        Ok(NoneType)
    }

    fn http<'v>(
        #[starlark(this)] _this: Value<'v>,
        method: &str,
        url: &str,
        headers: Option<Value<'v>>,
        body: Option<Value<'v>>,
        timeout: Option<Value<'v>>,
        #[starlark(require = named)] name: Option<Value<'v>>,
        #[starlark(require = named)] retry: Option<Value<'v>>,
        #[starlark(require = named, default = false)] catch: bool,
        eval: &mut Evaluator<'v, '_, '_>,
    ) -> starlark::Result<Value<'v>> {
        let session = Session::of(eval)?;
        let mut headers = headers_of(headers)?;
        let body = match given(body) {
            None => String::new(),
            Some(value) => match value.unpack_str() {
                Some(text) => text.to_owned(),
                None => {
                    if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-type")) {
                        let json = crate::protocol::Part::Text("application/json".to_owned());
                        headers.push(("content-type".to_owned(), vec![json]));
                    }
                    write_payload(session, "a request's body", value)?
                }
            },
        };
        let timeout_ms = optional_seconds("timeout", timeout)?.map(|seconds| seconds.saturating_mul(1_000));
        let head = HttpHead { method: method.to_owned(), url: url.to_owned(), headers, timeout_ms };
        let outcome = if session.is_durable() && !session.is_in_step() {
            let terms = terms(session, retry, false)?;
            let name = text("name", name)?.unwrap_or("http");
            step::run(eval, name, &terms, |_| requests::request(session, head, body.as_bytes()))
        } else {
            let response = requests::request(session, head, body.as_bytes());
            response.map(|text| read_result(Some(&text), eval.heap()))
        };
        settle(eval, outcome, catch)
    }

    fn secret<'v>(#[starlark(this)] _this: Value<'v>, name: &str) -> starlark::Result<Secret> {
        Ok(Secret::named(name))
    }

    fn fail<'v>(
        #[starlark(this)] _this: Value<'v>,
        message: &str,
        #[starlark(require = named)] r#type: Option<Value<'v>>,
        #[starlark(require = named, default = false)] retryable: bool,
        #[starlark(require = named)] details: Option<Value<'v>>,
        eval: &mut Evaluator<'v, '_, '_>,
    ) -> starlark::Result<NoneType> {
        let session = Session::of(eval)?;
        let category = if retryable { ErrorCategory::Retryable } else { ErrorCategory::NonRetryable };
        let error_type = text("type", r#type)?.unwrap_or(errors::EXECUTION);
        let mut failure = Failure::new(clip(error_type), category, clip(message));
        if let Some(details) = given(details) {
            let text = write_payload(session, "the details of a failure", details)?;
            failure.details = serde_json::from_str(&text).map_err(|_| wrong("details are a dict"))?;
        }
        Err(raise(session, Raised::Fail(failure.to_error())))
    }
}
