//! `servo entrypoints`

use std::path::Path;

use serde_json::{Map, Value, json};
use servo_client::{EntrypointQuery, ListQuery};
use servo_entrypoint::EntrypointStatusAction as Action;
use servo_entrypoint::gts::{self, STARLARK};
use servo_model::digits;

use crate::args::{EntrypointsCommand, PageArgs, SourceArgs};
use crate::failure::{Failure, exit};
use crate::input;
use crate::run::{Session, interruptible};

pub(crate) async fn run(session: &Session, command: EntrypointsCommand) -> Result<u8, Failure> {
    let (client, out) = (&session.client, &session.out);
    // Files are read before the first request.
    let document = match &command {
        EntrypointsCommand::Register(args) => document(&args.source)?,
        EntrypointsCommand::Validate(source) => document(source)?,
        EntrypointsCommand::Update(args) => document(&args.source)?,
        _ => Value::Null,
    };
    // Of code it is the file where something is wrong, and not the document that was made of it.
    let code = match &command {
        EntrypointsCommand::Register(args) => Some(&args.source),
        EntrypointsCommand::Validate(source) => Some(source),
        EntrypointsCommand::Update(args) => Some(&args.source),
        _ => None,
    };
    let code = code.filter(|args| is_code(args)).map(|args| args.file.clone());
    let done = interruptible(async {
        let (id, action) = match command {
            EntrypointsCommand::Register(args) => {
                let registered = client.register_entrypoint(&document).await?;
                match registered.id.clone().filter(|_| args.activate) {
                    Some(id) => (id, Action::Activate),
                    None => {
                        out.data(&*registered, registered.raw())?;
                        return Ok(exit::OK);
                    }
                }
            }
            EntrypointsCommand::Validate(_) => {
                let valid = client.validate_entrypoint(&document).await?;
                out.data(&*valid, valid.raw())?;
                return Ok(exit::OK);
            }
            EntrypointsCommand::List(args) => {
                let tags = args.tag.join(",");
                let query = EntrypointQuery {
                    prefix: args.prefix,
                    status: args.status,
                    tags: Some(tags).filter(|tags| !tags.is_empty()),
                    owner_type: args.owner_type,
                    runtime: args.adapter,
                    page: page(args.page),
                };
                return session.show(&args.watch, async || client.list_entrypoints(&query).await).await;
            }
            EntrypointsCommand::Get(args) => {
                return session.show(&args.watch, async || client.entrypoint(&registration(&args.id)).await).await;
            }
            EntrypointsCommand::Update(args) => {
                let updated = client.update_entrypoint(&registration(&args.id), &document).await?;
                out.data(&*updated, updated.raw())?;
                return Ok(exit::OK);
            }
            EntrypointsCommand::Delete(args) => {
                client.delete_entrypoint(&registration(&args.id)).await?;
                out.note(&format!("removed {}", args.id));
                return Ok(exit::OK);
            }
            EntrypointsCommand::Activate(args) => (registration(&args.id), Action::Activate),
            EntrypointsCommand::Deprecate(args) => (registration(&args.id), Action::Deprecate),
            EntrypointsCommand::Disable(args) => (registration(&args.id), Action::Disable),
            EntrypointsCommand::Enable(args) => (registration(&args.id), Action::Enable),
            EntrypointsCommand::Archive(args) => (registration(&args.id), Action::Archive),
        };
        let changed = client.set_entrypoint_status(&id, action).await?;
        out.data(&*changed, changed.raw())?;
        Ok(exit::OK)
    })
    .await;
    match code {
        Some(file) => done.map_err(|failure| failure.in_file(&file, "$.implementation.code.source")),
        None => done,
    }
}

fn is_code(args: &SourceArgs) -> bool {
    args.file.extension().is_some_and(|extension| extension == "star")
}

pub(super) fn page(args: PageArgs) -> ListQuery {
    ListQuery { filter: args.filter, order: args.order, limit: Some(args.limit), cursor: args.cursor }
}

/// How a registration is asked for. Its path takes an id or a short name, and an address without its end is one that says its kind.
pub(super) fn registration(name: &str) -> String {
    if name.starts_with("gts.") { name.trim_end_matches('~').to_owned() } else { name.to_owned() }
}

/// What is asked of the server for a name: the server knows which versions there are, and of which kind.
pub(super) fn called(name: &str, kind: Option<&str>) -> String {
    match kind {
        Some(kind) if !name.starts_with("gts.") => format!("{kind}{}", name.trim_end_matches('~')),
        _ => name.to_owned(),
    }
}

/// The address that code is registered under: without a version, the first.
pub(super) fn address(name: &str, workflow: bool) -> String {
    if name.starts_with("gts.") {
        return name.to_owned();
    }
    let kind = if workflow { gts::WORKFLOW } else { gts::FUNCTION };
    // `vendor.app.tax` is its first version.
    let last = name.trim_end_matches('~').rsplit('.').next().unwrap_or_default();
    let is_versioned = last.strip_prefix('v').is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()));
    let version = if is_versioned { "" } else { ".v1" };
    format!("{kind}{}{version}~", name.trim_end_matches('~'))
}

/// The definition in a file, or one made from code.
fn document(args: &SourceArgs) -> Result<Value, Failure> {
    let text = input::read(&args.file)?;
    if is_code(args) {
        return from_code(&text, args);
    }
    if args.name.is_some() || args.workflow || args.params_schema.is_some() {
        return Err(Failure::usage("--name, --workflow and --params-schema are for code")
            .hint("give a .star file, or leave them out: the document says it all"));
    }
    parse(&args.file, &text)
}

fn parse(file: &Path, text: &str) -> Result<Value, Failure> {
    let wrong = |error: String| Failure::usage(format!("{}: {error}", file.display()));
    // The server cannot see what was lost before it was sent.
    if let Some(place) = digits::first_too_large(text) {
        return Err(wrong(format!("{place}: {}", digits::ADVICE)));
    }
    serde_json::from_str(text).map_err(|error| wrong(error.to_string()))
}

fn from_code(source: &str, args: &SourceArgs) -> Result<Value, Failure> {
    let Some(name) = &args.name else {
        return Err(Failure::usage("code needs a name").hint("add --name vendor.app.tax"));
    };
    let params = match &args.params_schema {
        Some(file) => parse(file, &input::read(file)?)?,
        // Without a schema: any object.
        None => json!({"type": "object"}),
    };
    let title = args.file.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    let modes: &[&str] = &["sync", "async"];
    let mut traits = Map::new();
    traits.insert(
        "invocation".to_owned(),
        json!({"supported": modes, "default": if args.workflow { "async" } else { "sync" }}),
    );
    traits.insert("limits".to_owned(), json!({}));
    traits.insert("retry".to_owned(), json!({"max_attempts": 3}));
    if args.workflow {
        let workflow =
            json!({"compensation": {}, "checkpointing": {"strategy": "automatic"}, "max_suspension_days": 30});
        traits.insert("workflow".to_owned(), workflow);
    }
    Ok(json!({
        "entrypoint_id": address(name, args.workflow),
        "version": args.version,
        "title": title,
        "owner": {"owner_type": "tenant", "id": args.tenant, "tenant_id": args.tenant},
        "schema": {"params": params, "returns": {"type": "object"}, "errors": []},
        "traits": traits,
        "implementation": {"adapter": STARLARK, "kind": "code", "code": {"language": "starlark", "source": source}},
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_stands_before_a_short_name_only() {
        assert_eq!(called("vendor.app.tax", None), "vendor.app.tax");
        assert_eq!(called("vendor.app.tax.v2~", Some(gts::WORKFLOW)), format!("{}vendor.app.tax.v2", gts::WORKFLOW));
        assert_eq!(called("gts.a.b.c.v1~", Some(gts::WORKFLOW)), "gts.a.b.c.v1~");
    }

    #[test]
    fn a_short_name_is_the_own_part_of_an_address() {
        for (name, workflow, expected) in [
            ("vendor.app.tax", false, "vendor.app.tax.v1~"),
            ("vendor.app.tax.v2", false, "vendor.app.tax.v2~"),
            ("vendor.app.orders.v3~", true, "vendor.app.orders.v3~"),
            ("vendor.app.vat", false, "vendor.app.vat.v1~"),
        ] {
            let kind = if workflow { "workflow" } else { "function" };
            let base = "gts.x.core.serverless.entrypoint.v1~x.core.serverless";
            assert_eq!(address(name, workflow), format!("{base}.{kind}.v1~{expected}"), "{name}");
        }
        assert_eq!(address("gts.a.b.c.v1~", true), "gts.a.b.c.v1~");
    }
}
