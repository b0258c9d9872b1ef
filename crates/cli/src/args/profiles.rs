//! `servo profiles …`: servers and keys under names. What is stored is what the global options say.

use clap::{Args, Subcommand};

use super::values;

#[derive(Debug, Subcommand)]
pub enum ProfilesCommand {
    /// Show profiles; never their keys
    #[command(visible_alias = "ls", before_help = "Example:\n  servo profiles list")]
    List,
    /// Keep a server and a key under a name; the first one is used at once
    #[command(
        before_help = "Examples:\n  servo profiles add prod --server https://servo.example --token - < key\n  servo profiles add local --server http://127.0.0.1:8700 --replace"
    )]
    Add(AddProfileArgs),
    /// Use a profile wherever nothing else is said
    #[command(before_help = "Example:\n  servo profiles use prod")]
    Use(ProfileArg),
    /// Forget a profile
    #[command(visible_alias = "rm", before_help = "Example:\n  servo profiles remove prod")]
    Remove(ProfileArg),
}

#[derive(Debug, Clone, Args)]
pub struct ProfileArg {
    /// The profile
    #[arg(value_name = "NAME", value_parser = values::profile)]
    pub name: String,
}

#[derive(Debug, Clone, Args)]
pub struct AddProfileArgs {
    /// The profile; its server comes from --server, its key from --token (- reads it from stdin), both also from variables
    #[arg(value_name = "NAME", value_parser = values::profile)]
    pub name: String,
    /// Replace the profile if it is there
    #[arg(long)]
    pub replace: bool,
}
