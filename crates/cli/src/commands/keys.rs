//! `servo keys`, `servo audit`

use servo_canon::Digest;
use servo_client::AuditFilter;
use servo_model::{Role, TenantId, Timestamp};
use servo_wire::key::{SECRET_BYTES, api_key};
use servo_wire::v1::{CreateKeyRequest, KeyKind};

use crate::args::{AuditCommand, CreateKeyArgs, GenerateKeyArgs, KeysCommand};
use crate::failure::{Failure, exit};
use crate::output::Out;
use crate::run::{Session, interruptible};
use crate::view::GeneratedKey;

pub(crate) async fn run(session: &Session, command: KeysCommand) -> Result<u8, Failure> {
    let (client, out) = (&session.client, &session.out);
    interruptible(async {
        match command {
            KeysCommand::Create(args) => {
                let created = client.create_key(&request(args)).await?;
                out.data(&*created, created.raw())?;
                out.note("keep the secret now: it is not shown again");
            }
            KeysCommand::Generate(args) => return generate(out, args),
            KeysCommand::List(args) => {
                let tenant = args.tenant.as_ref().map(TenantId::as_str);
                let look = async || client.keys(tenant, args.after.as_deref(), Some(args.limit)).await;
                return session.show(&args.watch, look).await;
            }
            KeysCommand::Revoke(args) => {
                let item = client.revoke_key(&super::ids::key(session, &args.id).await?).await?;
                out.data(&*item, item.raw())?;
            }
        }
        Ok(exit::OK)
    })
    .await
}

/// A key and the lines for a configuration. Nothing is asked of a server: the first key is there before it.
pub(crate) fn generate(out: &Out, args: GenerateKeyArgs) -> Result<u8, Failure> {
    let mut random = [0; SECRET_BYTES];
    getrandom::fill(&mut random).map_err(|error| Failure::new(exit::ERROR, format!("no randomness: {error}")))?;
    let key = api_key(random);
    let roles = if args.role.is_empty() { vec![Role::PlatformAdmin] } else { args.role };
    let sha256 = Digest::of(key.as_bytes()).to_string();
    out.print(&GeneratedKey { name: args.name, tenant: args.tenant, roles, sha256, key })?;
    out.note("keep the key now: nothing has a copy of it");
    Ok(exit::OK)
}

fn request(args: CreateKeyArgs) -> CreateKeyRequest {
    CreateKeyRequest {
        name: args.name,
        roles: args.role,
        kind: if args.access { KeyKind::Access } else { KeyKind::Api },
        tenant_id: args.tenant,
        expires_in_seconds: args.expires_in.map(|life| life.as_secs()),
    }
}

pub(crate) async fn audit(session: &Session, command: AuditCommand) -> Result<u8, Failure> {
    let AuditCommand::List(args) = command;
    let time = |at: Option<Timestamp>| at.map(|at| at.to_string());
    let filter = AuditFilter {
        actor: args.actor,
        action: args.action,
        object: args.object,
        outcome: args.outcome,
        from: time(args.from),
        to: time(args.to),
        tenant: args.tenant.map(|tenant| tenant.to_string()),
        limit: Some(args.limit),
        cursor: args.cursor,
    };
    session.show(&args.watch, async || session.client.audit(&filter).await).await
}
