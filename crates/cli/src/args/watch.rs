//! Looking again and again.

use std::time::Duration;

use clap::Args;

use super::values;

#[derive(Debug, Clone, Default, Args)]
pub struct WatchArgs {
    /// Look again and again: redrawn on a terminal, otherwise each new or changed item as one line of JSON
    #[arg(long)]
    pub watch: bool,
    /// How often to look [default: 2s]
    #[arg(long, value_name = "DURATION", requires = "watch", value_parser = values::interval)]
    pub every: Option<Duration>,
}
