//! Keys and the audit log.

use std::time::Duration;

use clap::{Args, Subcommand};
use servo_model::{Role, TenantId, Timestamp};

use super::{WatchArgs, values};

#[derive(Debug, Subcommand)]
pub enum KeysCommand {
    /// Make a key; its secret is shown this once
    #[command(
        before_help = "Examples:\n  servo keys create ci --role operator --expires-in 90d\n  servo keys create lambda --role operator --access"
    )]
    Create(CreateKeyArgs),
    /// Make the first key on this machine, with the lines for a server's configuration; asks no server
    #[command(
        visible_alias = "gen",
        before_help = "Examples:\n  servo keys generate --tenant acme\n  servo keys generate --name ci --tenant acme --role operator -o json"
    )]
    Generate(GenerateKeyArgs),
    /// Show keys, newest first; never their secrets
    #[command(visible_alias = "ls", before_help = "Example:\n  servo keys list")]
    List(KeyListArgs),
    /// End a key
    #[command(before_help = "Example:\n  servo keys revoke key_0194f3c2")]
    Revoke(RevokeKeyArgs),
}

#[derive(Debug, Clone, Args)]
pub struct CreateKeyArgs {
    /// What people call it
    #[arg(value_name = "NAME")]
    pub name: String,
    /// What it may do: viewer, operator, developer, admin or platform-admin; each includes those before it
    #[arg(long, value_name = "ROLE", required = true, value_parser = values::role)]
    pub role: Vec<Role>,
    /// How long it is good for; without this, until it is revoked
    #[arg(long, value_name = "DURATION", value_parser = values::parse_duration)]
    pub expires_in: Option<Duration>,
    /// An access key and secret for AWS's clients
    #[arg(long)]
    pub access: bool,
    /// For another tenant than your own; needs the role platform-admin
    #[arg(long, value_name = "TENANT", value_parser = values::tenant)]
    pub tenant: Option<TenantId>,
}

#[derive(Debug, Clone, Args)]
pub struct GenerateKeyArgs {
    /// Whom it stands for, in events and logs
    #[arg(long, value_name = "NAME", default_value = "first")]
    pub name: String,
    /// The tenant that it belongs to
    #[arg(long, value_name = "TENANT", default_value = "default", value_parser = values::tenant)]
    pub tenant: TenantId,
    /// What it may do; may be given again [default: platform-admin]
    #[arg(long, value_name = "ROLE", value_parser = values::role)]
    pub role: Vec<Role>,
}

#[derive(Debug, Clone, Args)]
pub struct KeyListArgs {
    /// Keys per page
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub limit: u32,
    /// Go on behind this key
    #[arg(long, value_name = "KEY")]
    pub after: Option<String>,
    /// Of another tenant than your own; needs the role platform-admin
    #[arg(long, value_name = "TENANT", value_parser = values::tenant)]
    pub tenant: Option<TenantId>,
    #[command(flatten)]
    pub watch: WatchArgs,
}

#[derive(Debug, Clone, Args)]
pub struct RevokeKeyArgs {
    /// The key, by its id; the beginning or the end of it will do
    #[arg(value_name = "KEY")]
    pub id: String,
}

#[derive(Debug, Subcommand)]
pub enum AuditCommand {
    /// Show who did what, newest first
    #[command(
        visible_alias = "ls",
        before_help = "Examples:\n  servo audit list --outcome denied\n  servo audit list --action key.create --from 2026-01-01T00:00:00Z"
    )]
    List(AuditListArgs),
}

#[derive(Debug, Clone, Args)]
pub struct AuditListArgs {
    /// Only what this one did: a key's id, or its name in the configuration
    #[arg(long, value_name = "SUBJECT")]
    pub actor: Option<String>,
    /// Only this action, such as function.publish
    #[arg(long, value_name = "NAME")]
    pub action: Option<String>,
    /// Only what was done to this object
    #[arg(long, value_name = "ID")]
    pub object: Option<String>,
    /// Only what ended so
    #[arg(long, value_name = "OUTCOME", value_parser = ["allowed", "denied", "failed"])]
    pub outcome: Option<String>,
    /// From this time on
    #[arg(long, value_name = "TIME", value_parser = values::parse_time)]
    pub from: Option<Timestamp>,
    /// Up to this time
    #[arg(long, value_name = "TIME", value_parser = values::parse_time)]
    pub to: Option<Timestamp>,
    /// Of this tenant; others than your own need the role platform-admin
    #[arg(long, value_name = "TENANT", value_parser = values::tenant)]
    pub tenant: Option<TenantId>,
    /// Entries per page
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub limit: u32,
    /// Go on where an earlier page ended
    #[arg(long, value_name = "CURSOR")]
    pub cursor: Option<String>,
    #[command(flatten)]
    pub watch: WatchArgs,
}
