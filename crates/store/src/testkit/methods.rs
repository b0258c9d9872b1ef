//! The methods of a store, by name: those that can be made to fail, and those that the stores are compared by.

/// Every method, in the order of the roles.
pub(crate) const METHODS: [&str; 55] = [
    "now",
    "append",
    "read_run",
    "snapshot_at",
    "put_snapshot",
    "read_log",
    "log_head",
    "count_log",
    "get_run",
    "list_runs",
    "find_request",
    "count_active",
    "count_open",
    "claim_queue",
    "release_queue",
    "open_dispatches",
    "get_dispatch",
    "backlog",
    "due_timers",
    "get_timer",
    "authority",
    "break_leases",
    "cursor",
    "move_cursor",
    "outbox_put",
    "outbox_due",
    "outbox_len",
    "outbox_done",
    "outbox_bury",
    "dead_letters",
    "redrive",
    "raise_alert",
    "alerts",
    "clear_alert",
    "put_function",
    "get_function",
    "list_functions",
    "list_versions",
    "remove_function",
    "put_alias",
    "get_alias",
    "list_aliases",
    "remove_alias",
    "put_lines",
    "read_lines",
    "info",
    "secret",
    "quarantine",
    "retire",
    "delete_run",
    "trim_system",
    "import_run",
    "backup",
    "integrity",
    "close",
];

/// Their answers are a store's own: its time, version, secret and files. Everything else must be the same everywhere.
const OWN: [&str; 6] = ["now", "info", "secret", "backup", "integrity", "close"];

/// What a comparison of stores must have seen succeed.
pub(super) fn compared() -> impl Iterator<Item = &'static str> {
    METHODS.into_iter().filter(|method| !OWN.contains(method))
}
