//! What this crate hands back to the binary: commands that start a server or open a data folder.

use std::path::PathBuf;
use std::time::Duration;

use servo_model::Timestamp;
use servo_model::contract::RuntimeCommand;

use crate::args::{BackupArgs, ConfigArgs, DevArgs, DoctorArgs, RestoreArgs, ServerArgs};

/// What is left to do after [`run`](crate::run).
#[derive(Debug)]
pub enum Next {
    /// Nothing: everything is printed, the process ends with this code.
    Done(u8),
    /// The binary goes on, and prints with [`Out`](crate::Out).
    Local(Local),
}

#[derive(Debug, Clone)]
pub enum Local {
    Dev(DevArgs),
    DemoCrash,
    Server(ServerArgs),
    ConfigCheck(ConfigArgs),
    ConfigPrint(ConfigArgs),
    /// The runtime contract on a data folder, at the clock's time or another.
    RuntimeLocal {
        data_dir: PathBuf,
        at: Option<Timestamp>,
        action: RuntimeAction,
    },
    StoreLocal {
        data_dir: PathBuf,
        action: StoreAction,
    },
    Doctor(DoctorArgs),
}

/// Each is printed as the type named here, so that both ways give the same JSON.
#[derive(Debug, Clone)]
pub enum RuntimeAction {
    /// Prints [`Executed`](servo_wire::v1::Executed).
    Exec(RuntimeCommand),
    /// Prints [`RuntimeSnapshot`](servo_model::contract::RuntimeSnapshot).
    Snapshot,
    /// Prints [`RuntimeEventPage`](servo_wire::v1::RuntimeEventPage).
    Events { after: Option<String>, limit: u32 },
}

/// Each is printed as the type named here, so that both ways give the same JSON.
#[derive(Debug, Clone)]
pub enum StoreAction {
    /// Prints [`StoreInfo`](servo_wire::v1::StoreInfo).
    Info,
    /// Prints [`BackupDone`](crate::view::BackupDone).
    Backup(BackupArgs),
    /// Prints [`RestoreDone`](crate::view::RestoreDone).
    Restore(RestoreArgs),
    /// Prints [`VerifyReport`](servo_wire::v1::VerifyReport); exit code 1 if it is not clean.
    Verify,
    /// Prints [`StoreInfo`](servo_wire::v1::StoreInfo).
    AcceptLoss,
    /// Prints [`Retired`](servo_wire::v1::Retired).
    Retention { older_than: Option<Duration> },
}
