//! `servo entrypoints …`

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::WatchArgs;

#[derive(Debug, Subcommand)]
pub enum EntrypointsCommand {
    /// Register an entrypoint, or a new version of one, as a draft
    #[command(
        before_help = "Examples:\n  servo entrypoints register tax.json\n  servo entrypoints register tax.star --name vendor.app.tax --params-schema params.json --activate"
    )]
    Register(RegisterEntrypointArgs),
    /// Check a definition without keeping it
    #[command(before_help = "Example:\n  servo entrypoints validate tax.json")]
    Validate(SourceArgs),
    /// List entrypoints, newest first
    #[command(
        visible_alias = "ls",
        before_help = "Examples:\n  servo entrypoints list --status active\n  servo entrypoints list --filter \"owner_type eq 'tenant'\" -o ids"
    )]
    List(EntrypointListArgs),
    /// Show an entrypoint
    #[command(
        visible_alias = "show",
        before_help = "Examples:\n  servo entrypoints get vendor.app.tax\n  servo entrypoints get ep_0194f3c2"
    )]
    Get(EntrypointGetArgs),
    /// Replace a draft
    #[command(before_help = "Example:\n  servo entrypoints update ep_0194f3c2 tax.json")]
    Update(UpdateArgs),
    /// Let a draft be called
    #[command(before_help = "Example:\n  servo entrypoints activate ep_0194f3c2")]
    Activate(EntrypointArg),
    /// Discourage its use; it can still be called
    #[command(before_help = "Example:\n  servo entrypoints deprecate ep_0194f3c2")]
    Deprecate(EntrypointArg),
    /// Let it not be called for now
    #[command(before_help = "Example:\n  servo entrypoints disable ep_0194f3c2")]
    Disable(EntrypointArg),
    /// Let it be called again
    #[command(before_help = "Example:\n  servo entrypoints enable ep_0194f3c2")]
    Enable(EntrypointArg),
    /// Keep it as history only
    #[command(before_help = "Example:\n  servo entrypoints archive ep_0194f3c2")]
    Archive(EntrypointArg),
    /// Delete a draft, archive what is deprecated or disabled
    #[command(visible_alias = "rm", before_help = "Example:\n  servo entrypoints delete ep_0194f3c2")]
    Delete(EntrypointArg),
}

#[derive(Debug, Clone, Args)]
pub struct EntrypointArg {
    /// The entrypoint: a short name such as vendor.app.tax, one version of it, an address, or an id as `list` shows it
    #[arg(value_name = "ENTRYPOINT")]
    pub id: String,
}

#[derive(Debug, Clone, Args)]
pub struct EntrypointGetArgs {
    /// The entrypoint: a short name such as vendor.app.tax, one version of it, an address, or an id as `list` shows it
    #[arg(value_name = "ENTRYPOINT")]
    pub id: String,
    #[command(flatten)]
    pub watch: WatchArgs,
}

#[derive(Debug, Clone, Args)]
pub struct RegisterEntrypointArgs {
    #[command(flatten)]
    pub source: SourceArgs,
    /// Also let it be called
    #[arg(long)]
    pub activate: bool,
}

#[derive(Debug, Clone, Args)]
pub struct UpdateArgs {
    /// The entrypoint: a short name such as vendor.app.tax, one version of it, an address, or an id as `list` shows it
    #[arg(value_name = "ENTRYPOINT")]
    pub id: String,
    #[command(flatten)]
    pub source: SourceArgs,
}

/// A definition: a document, or code with what is said about it.
#[derive(Debug, Clone, Args)]
pub struct SourceArgs {
    /// A definition as JSON (- for stdin), or Starlark code in a .star file
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// For code: the address, or its own part such as vendor.app.tax
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// For code: a durable workflow instead of a function
    #[arg(long)]
    pub workflow: bool,
    /// For code: the JSON Schema of its params, a file
    #[arg(long, value_name = "FILE")]
    pub params_schema: Option<PathBuf>,
    /// For code: the tenant that owns it
    #[arg(long, value_name = "TENANT", default_value = "default")]
    pub tenant: String,
    /// For code: the version
    #[arg(long, value_name = "SEMVER", default_value = "1.0.0")]
    pub version: String,
}

#[derive(Debug, Clone, Args)]
pub struct EntrypointListArgs {
    /// Only those in this status
    #[arg(long, value_name = "STATUS", value_parser = ["draft", "active", "deprecated", "disabled", "archived"])]
    pub status: Option<String>,
    /// Only addresses that begin so
    #[arg(long, value_name = "PREFIX")]
    pub prefix: Option<String>,
    /// Only those with this tag; may be given again
    #[arg(long, value_name = "TAG")]
    pub tag: Vec<String>,
    /// Only those owned so
    #[arg(long, value_name = "KIND", value_parser = ["user", "tenant", "system"])]
    pub owner_type: Option<String>,
    /// Only those of this adapter, by its GTS id
    #[arg(long, value_name = "ADAPTER")]
    pub adapter: Option<String>,
    #[command(flatten)]
    pub page: PageArgs,
    #[command(flatten)]
    pub watch: WatchArgs,
}

/// Which part of a list.
#[derive(Debug, Clone, Args)]
pub struct PageArgs {
    /// A condition such as "created_at ge 2026-01-01T00:00:00.000Z"
    #[arg(long, value_name = "ODATA")]
    pub filter: Option<String>,
    /// Fields with asc or desc, such as "created_at desc"
    #[arg(long, value_name = "ODATA")]
    pub order: Option<String>,
    /// Items per page
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=200))]
    pub limit: u32,
    /// Go on where an earlier page ended
    #[arg(long, value_name = "CURSOR")]
    pub cursor: Option<String>,
}
