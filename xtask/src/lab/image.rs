//! The guest's image: a kernel and a packed root file system, kept until the recipe changes.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use super::kernel::Kernel;
use super::recipe::{PACKAGES, RELEASE, UNUSED, fingerprint};
use super::sources::Archives;
use crate::cleanup::Guard;
use crate::error::{Context, Result};
use crate::process::output;
use crate::progress::Progress;
use crate::{packages, place};

/// A finished image.
#[derive(Debug)]
pub(super) struct Image {
    /// The bootable kernel.
    pub(super) kernel: PathBuf,
    /// The packed root file system, without the agent.
    pub(super) base: PathBuf,
}

impl Image {
    /// The cached image, built first when there is none for the recipe as it is now.
    pub(super) fn ensure(progress: &Progress) -> Result<Self> {
        let folder = place::lab();
        fs::create_dir_all(&folder).context(folder.display())?;
        let _one_at_a_time = lock(&folder.join("lock"))?;
        let finished = folder.join(format!("image-{}", fingerprint()));
        if !finished.exists() {
            build(&folder, &finished, progress)?;
            remove_older(&folder, &finished);
        }
        Ok(Self { kernel: finished.join("vmlinuz"), base: finished.join("base.cpio.zst") })
    }
}

/// Holds a lock file until dropped; waits for another run that holds it.
fn lock(path: &Path) -> Result<File> {
    let file = File::create(path).context(path.display())?;
    file.lock().context(path.display())?;
    Ok(file)
}

fn build(folder: &Path, finished: &Path, progress: &Progress) -> Result<()> {
    packages::ensure(&packages::LAB, progress)?;
    let work = folder.join("building");
    remove(&work);
    fs::create_dir_all(work.join("image")).context(work.display())?;
    let doomed = work.clone();
    let _cleanup = Guard::new(move || remove(&doomed));
    let archives = Archives::of_this_machine()?;
    let kernel = Kernel::download(&work, &archives, progress)?;
    fs::copy(kernel.image(), work.join("image/vmlinuz")).context("copying the kernel")?;
    let root = bootstrap(&work, &archives, progress)?;
    kernel.install_modules(&root)?;
    UNUSED.iter().for_each(|path| remove(&root.join(path)));
    progress.say(format!("packing the image with kernel {}", kernel.version));
    pack(&root, &work.join("image/base.cpio.zst"))?;
    fs::rename(work.join("image"), finished).context("keeping the image")?;
    progress.say(format!("image ready: {}", finished.display()));
    Ok(())
}

/// Installs the guest's programs into a folder.
fn bootstrap(work: &Path, archives: &Archives, progress: &Progress) -> Result<PathBuf> {
    progress.say(format!("installing the guest's {} packages and what they need", PACKAGES.len()));
    let (root, sources) = (work.join("root"), work.join("sources.list"));
    fs::write(&sources, archives.release_lines()).context("writing the guest's sources")?;
    let mut command = Command::new("mmdebstrap");
    command.args(["--quiet", "--mode=root", "--variant=minbase", "--format=directory"]);
    command.arg(format!("--include={}", PACKAGES.join(",")));
    for folder in ["doc", "locale", "man"] {
        command.arg(format!("--dpkgopt=path-exclude=/usr/share/{folder}/*"));
    }
    output(command.arg(RELEASE).arg(&root).arg(&sources))?;
    Ok(root)
}

fn pack(root: &Path, to: &Path) -> Result<()> {
    let script = "set -o pipefail; cd \"$1\" && find . -print0 | cpio -0 -o -H newc --quiet | zstd -T0 -3 -q -o \"$2\"";
    output(Command::new("bash").args(["-c", script, "pack"]).arg(root).arg(to)).map(drop)
}

fn remove_older(folder: &Path, keep: &Path) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    let paths = entries.filter_map(std::io::Result::ok).map(|entry| entry.path());
    let older = paths
        .filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("image-")));
    older.filter(|path| path != keep).for_each(|path| remove(&path));
}

/// Removes a file or a folder if it is there.
fn remove(path: &Path) {
    let gone = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
    if let Err(error) = gone
        && error.kind() != std::io::ErrorKind::NotFound
    {
        eprintln!("xtask: could not remove {}: {error}", path.display());
    }
}
