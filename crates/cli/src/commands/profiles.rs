//! `servo profiles`

use std::path::{Path, PathBuf};

use servo_client::Options;

use crate::args::{AddProfileArgs, Global, ProfilesCommand};
use crate::failure::{Failure, exit};
use crate::input;
use crate::output::Out;
use crate::profiles::{self, Profile, Profiles};
use crate::settings::{Settings, variable};
use crate::view::ProfileList;

pub(crate) fn run(global: &Global, command: ProfilesCommand) -> Result<u8, Failure> {
    let out = Out::new(global);
    let nowhere = || Failure::usage("there is no folder for profiles").hint("set HOME or XDG_CONFIG_HOME");
    let path = profiles::path(variable).ok_or_else(nowhere)?;
    let mut known = Profiles::read(&path)?;
    match command {
        ProfilesCommand::List => {}
        ProfilesCommand::Add(args) => {
            if known.profiles.contains_key(&args.name) && !args.replace {
                let what = format!("there is a profile {} already", args.name);
                return Err(Failure::new(exit::CONFLICT, what).hint("choose another name, or add --replace"));
            }
            known.profiles.insert(args.name.clone(), profile(global, &args)?);
            if known.current.is_none() {
                out.note(&format!("{} is used from now on", args.name));
                known.current = Some(args.name);
            }
            known.write(&path)?;
        }
        ProfilesCommand::Use(args) => {
            known.get(&args.name)?;
            known.current = Some(args.name);
            known.write(&path)?;
        }
        ProfilesCommand::Remove(args) => {
            known.get(&args.name)?;
            known.profiles.remove(&args.name);
            if known.current.as_ref() == Some(&args.name) {
                known.current = None;
                out.note("no profile is in use any more");
            }
            known.write(&path)?;
        }
    }
    out.print(&ProfileList::of(&known))?;
    Ok(exit::OK)
}

/// What the options and variables say, without what another profile has.
fn profile(global: &Global, args: &AddProfileArgs) -> Result<Profile, Failure> {
    let settings = Settings::of(&Global { profile: None, ..global.clone() })?;
    if !settings.names_a_server() {
        return Err(Failure::usage(format!("profile {} needs a server", args.name)).hint("add --server URL"));
    }
    let token = match settings.token.filter(|token| !matches!(token.from, crate::settings::Origin::Profile(_))) {
        Some(token) if token.value == "-" => {
            let line = input::read("-".as_ref())?.trim().to_owned();
            if line.is_empty() {
                return Err(Failure::usage("stdin has no key"));
            }
            Some(line)
        }
        token => token.map(|token| token.value),
    };
    let ca_file = settings.ca_file.map(|file| absolute(&file.value)).transpose()?;
    // An address that cannot be meant is refused now, not at the first use.
    servo_client::Client::with_options(&Options::new(&settings.server.value, token.clone()))?;
    Ok(Profile { server: settings.server.value, token, ca_file })
}

/// The next command may be run in another folder.
fn absolute(path: &Path) -> Result<PathBuf, Failure> {
    std::path::absolute(path).map_err(|error| Failure::usage(format!("{}: {error}", path.display())))
}
