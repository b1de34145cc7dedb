//! Debian archives, as this machine's apt reaches them.

use std::path::Path;
use std::process::Command;

use super::recipe::RELEASE;
use crate::error::{Context, Failure, Result};
use crate::{packages, process};

/// Where this machine gets Debian from.
#[derive(Debug)]
pub(super) struct Archives {
    main: String,
    security: Option<String>,
}

impl Archives {
    /// Asks apt, whatever the format of its configuration.
    pub(super) fn of_this_machine() -> Result<Self> {
        if let Some(archives) = Self::configured()? {
            return Ok(archives);
        }
        packages::update_lists()?; // a machine just made has no lists yet, and apt names no archive without them
        Self::configured()?.ok_or_else(|| {
            Failure::new(
                "apt knows no Debian archive, from which the guest would be made: add one to its sources",
            )
        })
    }

    /// Source lines of the release the guest is made from.
    pub(super) fn release_lines(&self) -> String {
        let mut lines = format!("deb {0} {RELEASE} main\ndeb {0} {RELEASE}-updates main\n", self.main);
        if let Some(security) = &self.security {
            lines += &format!("deb {security} {RELEASE}-security main\n");
        }
        lines
    }

    /// Source lines of the backports to it. Archives drop them some time after the release.
    pub(super) fn backport_lines(&self) -> String {
        format!("deb {} {RELEASE}-backports main\n", self.main)
    }

    fn configured() -> Result<Option<Self>> {
        let format = "$(ORIGIN) $(RELEASE) $(SITE)";
        let list = process::output(Command::new("apt-get").args([
            "indextargets",
            "--format",
            format,
            "Created-By: Packages",
        ]))?;
        Ok(parse(&list))
    }
}

/// Reads apt's list of index files: origin, release and address on each line.
fn parse(list: &str) -> Option<Archives> {
    let debian = || list.lines().filter_map(|line| line.strip_prefix("Debian ")?.split_once(' '));
    let main = debian().find(|(release, _)| !release.contains('-'))?.1.to_owned();
    let security =
        debian().find(|(release, _)| release.ends_with("-security")).map(|(_, site)| site.to_owned());
    Some(Archives { main, security })
}

/// An apt of its own, beside the machine's: other sources, own lists, nothing installed through it.
#[derive(Debug)]
pub(super) struct PrivateApt {
    options: Vec<String>,
}

impl PrivateApt {
    /// Sets it up in a folder and fetches its lists.
    pub(super) fn new(folder: &Path, lines: &str) -> Result<Self> {
        for part in ["lists/partial", "cache/archives/partial"] {
            std::fs::create_dir_all(folder.join(part)).context("making a folder for apt")?;
        }
        let sources = folder.join("sources.list");
        std::fs::write(&sources, lines).context("writing apt's sources")?;
        let apt = Self { options: options(folder, &sources) };
        process::output(apt.command("apt-get").arg("update"))?;
        Ok(apt)
    }

    /// One of apt's commands with the private configuration.
    pub(super) fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.args(self.options.iter().flat_map(|option| ["-o", option]));
        command
    }
}

fn options(folder: &Path, sources: &Path) -> Vec<String> {
    vec![
        format!("Dir::Etc::SourceList={}", sources.display()),
        "Dir::Etc::SourceParts=-".into(),
        format!("Dir::State::Lists={}", folder.join("lists").display()),
        format!("Dir::Cache={}", folder.join("cache").display()),
        "APT::Sandbox::User=root".into(), // the folder is ours, apt's own user could not write to it
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = "NodeSource nodistro http://n.test\nDebian bookworm http://d.test/debian\n\
                        Debian bookworm-updates http://d.test/debian\nDebian bookworm-security http://d.test/sec\n";

    #[test]
    fn archives_are_found_among_others() {
        let archives = parse(LIST).unwrap();
        assert_eq!(archives.main, "http://d.test/debian");
        assert_eq!(archives.security.as_deref(), Some("http://d.test/sec"));
    }

    #[test]
    fn no_debian_archive_is_no_archive() {
        assert!(parse("Ubuntu noble http://u.test\n").is_none());
    }

    #[test]
    fn a_machine_without_the_security_archive_still_makes_a_guest() {
        let archives = parse("Debian trixie http://d.test/debian\n").unwrap();
        assert_eq!(archives.release_lines().lines().count(), 2);
    }
}
