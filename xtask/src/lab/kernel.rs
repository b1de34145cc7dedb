//! The guest's kernel: a Debian package, downloaded and unpacked, never installed.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::recipe::{KERNELS, MODULES};
use super::sources::{Archives, PrivateApt};
use crate::error::{Context, Failure, Result};
use crate::process::output;
use crate::progress::Progress;

/// An unpacked kernel package.
#[derive(Debug)]
pub(super) struct Kernel {
    folder: PathBuf,
    /// The version, as in the names of its files.
    pub(super) version: String,
}

impl Kernel {
    /// Downloads and unpacks the best kernel the archives offer.
    pub(super) fn download(folder: &Path, archives: &Archives, progress: &Progress) -> Result<Self> {
        let (apt, package) = find(folder, archives)?;
        progress.say(format!("downloading {package}"));
        output(apt.command("apt-get").args(["download", &package]).current_dir(folder))?;
        let unpacked = folder.join("kernel");
        output(Command::new("dpkg").arg("-x").arg(archive(folder)?).arg(&unpacked))?;
        Ok(Self { folder: unpacked, version: package.trim_start_matches("linux-image-").to_owned() })
    }

    /// The bootable image.
    pub(super) fn image(&self) -> PathBuf {
        self.folder.join(format!("boot/vmlinuz-{}", self.version))
    }

    /// Copies the modules the guest needs into its root, uncompressed so that loading is quick under emulation.
    pub(super) fn install_modules(&self, root: &Path) -> Result<()> {
        let (from, to) = (self.modules(&self.folder), self.modules(root));
        output(Command::new("depmod").arg("-b").arg(&self.folder).arg(&self.version))?;
        let index =
            fs::read_to_string(from.join("modules.dep")).context("reading the kernel's module index")?;
        for module in closure(&index, MODULES) {
            copy(&from.join(&module), &to.join(&module))?;
        }
        for list in ["modules.builtin", "modules.builtin.modinfo", "modules.order"] {
            copy(&from.join(list), &to.join(list))?;
        }
        output(Command::new("find").arg(&to).args(["-name", "*.xz", "-exec", "xz", "-d", "{}", "+"]))?;
        output(Command::new("depmod").arg("-b").arg(root).arg(&self.version)).map(drop)
    }

    fn modules(&self, root: &Path) -> PathBuf {
        root.join("lib/modules").join(&self.version)
    }
}

/// The best kernel, and the apt that has it: the backports are asked only if the release lacks the series wanted most.
fn find(folder: &Path, archives: &Archives) -> Result<(PrivateApt, String)> {
    match offered(&folder.join("apt"), &archives.release_lines())? {
        (apt, Some(package)) if package.starts_with(KERNELS[0]) => Ok((apt, package)),
        release => {
            let backports = offered(&folder.join("apt-backports"), &archives.backport_lines());
            let found =
                backports.into_iter().chain([release]).find_map(|(apt, package)| Some((apt, package?)));
            found.ok_or_else(|| Failure::new("the Debian archive offers no kernel image with rdma_rxe"))
        }
    }
}

fn offered(folder: &Path, lines: &str) -> Result<(PrivateApt, Option<String>)> {
    let apt = PrivateApt::new(folder, lines)?;
    let list = output(apt.command("apt-cache").args(["search", "--names-only", "^linux-image-6"]))?;
    Ok((apt, newest(&list)))
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    let parent = to.parent().unwrap_or(to);
    fs::create_dir_all(parent).context(parent.display())?;
    fs::copy(from, to).context(from.display()).map(drop)
}

fn archive(folder: &Path) -> Result<PathBuf> {
    let entries = fs::read_dir(folder).context(folder.display())?;
    let found = entries.filter_map(std::io::Result::ok).map(|entry| entry.path());
    found
        .into_iter()
        .find(|path| path.extension() == Some(OsStr::new("deb")))
        .ok_or_else(|| Failure::new("apt-get download left no package"))
}

/// The best package of `apt-cache search` output: the plain flavour, of the series wanted most, newest.
fn newest(list: &str) -> Option<String> {
    let names: Vec<&str> =
        list.lines().filter_map(|line| line.split(' ').next()).filter(|name| plain(name)).collect();
    KERNELS.iter().find_map(|series| {
        names
            .iter()
            .filter(|name| name.starts_with(series))
            .max_by_key(|name| numbers(name))
            .map(ToString::to_string)
    })
}

/// Whether a kernel package is the signed, general one.
fn plain(name: &str) -> bool {
    name.ends_with("-amd64") && !["-cloud-", "-rt-"].iter().any(|flavour| name.contains(flavour))
}

fn numbers(name: &str) -> Vec<u32> {
    name.split(|c: char| !c.is_ascii_digit()).filter_map(|number| number.parse().ok()).collect()
}

/// Files of the wanted modules and of all they depend on, from the text of `modules.dep`. A module that the kernel
/// has built in, or does not know, is not listed and not needed.
fn closure(index: &str, wanted: &[&str]) -> Vec<String> {
    let mut files: Vec<String> = index
        .lines()
        .filter_map(|line| line.split_once(':'))
        .filter(|(file, _)| wanted.contains(&module_name(file)))
        .flat_map(|(file, needs)| std::iter::once(file).chain(needs.split_whitespace()))
        .map(str::to_owned)
        .collect();
    files.sort();
    files.dedup();
    files
}

fn module_name(file: &str) -> &str {
    let name = file.rsplit('/').next().unwrap_or(file);
    name.split('.').next().unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_plain_kernel_of_the_best_series_is_taken() {
        let list = "linux-image-6.1.0-50-amd64 - x\nlinux-image-6.12.9+deb12-amd64 - x\n\
                    linux-image-6.12.95+deb12-amd64 - x\nlinux-image-6.12.99+deb12-rt-amd64 - x\n\
                    linux-image-6.12.99+deb12-amd64-unsigned - x\nlinux-image-6.12.99+deb12-cloud-amd64 - x\n";
        assert_eq!(newest(list).as_deref(), Some("linux-image-6.12.95+deb12-amd64"));
    }

    #[test]
    fn without_backports_the_kernel_of_the_release_is_taken() {
        let list = "linux-image-6.1.0-9-amd64 - x\nlinux-image-6.1.0-50-amd64 - x\n";
        assert_eq!(newest(list).as_deref(), Some("linux-image-6.1.0-50-amd64"));
        assert_eq!(newest("linux-image-5.10.0-1-amd64 - x\n"), None);
    }

    #[test]
    fn modules_come_with_what_they_need() {
        let index = "kernel/a/rdma_rxe.ko.xz: kernel/b/ib_core.ko.xz kernel/b/udp_tunnel.ko.xz\n\
                     kernel/b/ib_core.ko.xz:\nkernel/c/other.ko.xz:\n";
        let files = closure(index, &["rdma_rxe", "ib_core", "unknown"]);
        assert_eq!(files, ["kernel/a/rdma_rxe.ko.xz", "kernel/b/ib_core.ko.xz", "kernel/b/udp_tunnel.ko.xz"]);
    }
}
