//! The running guest: QEMU with software emulation, so that it works on any machine.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::agent::PORT;
use super::cpio::Archive;
use super::image::Image;
use super::network::{GUEST, MTU, Network, TAP};
use crate::cleanup::Guard;
use crate::error::{Context, Failure, Result};
use crate::place;
use crate::process::{Process, tail};
use crate::progress::Progress;

/// How long a guest may take to come up on a slow, busy machine.
const BOOT_LIMIT: Duration = Duration::from_secs(240);
const READY: &str = "agent: listening";
const FAILED: &str = "uroce: FAILED";

/// A booted guest, ended when dropped.
#[derive(Debug)]
pub(crate) struct Guest {
    qemu: Process,
    console: PathBuf,
    _files: Guard,
}

impl Guest {
    /// Boots the image on the network and waits until its agent listens.
    pub(crate) fn boot(network: &Network, progress: &Progress) -> Result<Self> {
        let image = Image::ensure(progress)?;
        let run = place::lab().join(format!("run-{}", std::process::id()));
        fs::create_dir_all(&run).context(run.display())?;
        let doomed = run.clone();
        let files = Guard::new(move || drop(fs::remove_dir_all(doomed)));
        let initrd = run.join("initrd");
        pack(&image, &initrd)?;
        progress.say("booting the guest under software emulation");
        let console = place::lab().join("console.log");
        let _ = fs::remove_file(&console); // a boot before this one may have left it
        let qemu = Process::spawn(&mut qemu(network, &image, &initrd, &console)?)?;
        let guest = Self { qemu, console, _files: files };
        guest.wait_ready(progress)?;
        Ok(guest)
    }

    /// Where the guest's console is recorded.
    pub(crate) fn console(&self) -> &Path {
        &self.console
    }

    /// Waits until the emulator ends, for whatever reason.
    pub(crate) fn wait(&self) -> Result<()> {
        self.qemu.wait().map(drop)
    }

    fn wait_ready(&self, progress: &Progress) -> Result<()> {
        let limit = Instant::now() + BOOT_LIMIT;
        loop {
            let text = self.console_text();
            if text.contains(READY) {
                progress.say("guest ready");
                return Ok(());
            }
            let ended = self.qemu.poll()?.is_some();
            if ended || text.contains(FAILED) || Instant::now() > limit {
                return Err(self.boot_failure(&text));
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    fn console_text(&self) -> String {
        fs::read(&self.console).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
    }

    fn boot_failure(&self, console: &str) -> Failure {
        let emulator = fs::read_to_string(emulator_log()).unwrap_or_default();
        Failure::new(format!(
            "the guest did not come up within {} s.\nLast lines of its console ({}):\n{}\nThe emulator said: {}",
            BOOT_LIMIT.as_secs(),
            self.console.display(),
            tail(console, 20),
            if emulator.is_empty() { "nothing" } else { emulator.trim() },
        ))
    }
}

fn emulator_log() -> PathBuf {
    place::lab().join("qemu.log")
}

/// Writes the initial file system: the agent in front of the base image.
fn pack(image: &Image, to: &Path) -> Result<()> {
    let source = place::root().join("conformance/agent");
    let mut archive = Archive::default();
    archive.file("init", &read(&source.join("init"))?);
    archive.folder("uroce");
    for entry in fs::read_dir(&source).context(source.display())? {
        let path = entry.context(source.display())?.path();
        if path.extension().is_some_and(|kind| kind == "py") {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            archive.file(&format!("uroce/{name}"), &read(&path)?);
        }
    }
    let mut bytes = archive.finish();
    bytes.extend(read(&image.base)?);
    fs::write(to, bytes).context(to.display())
}

fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).context(path.display())
}

fn qemu(network: &Network, image: &Image, initrd: &Path, console: &Path) -> Result<Command> {
    let log = fs::File::create(emulator_log()).context("creating the emulator's log")?;
    let mut command = network.bridge().command("qemu-system-x86_64");
    command.args("-accel tcg,thread=multi,tb-size=512 -cpu max -smp 1 -m 1024".split(' '));
    command.args(["-nographic", "-no-reboot", "-nodefaults", "-monitor", "none"]);
    command.arg("-serial").arg(format!("file:{}", console.display()));
    command.arg("-kernel").arg(&image.kernel).arg("-initrd").arg(initrd);
    command.arg("-append").arg(kernel_arguments());
    command.args([
        "-netdev",
        &format!("tap,id=n0,ifname={TAP},script=no,downscript=no"),
        "-device",
        &network_card(),
    ]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
    Ok(command)
}

fn kernel_arguments() -> String {
    let (v4, v6) = (GUEST.v4, GUEST.v6);
    format!(
        "console=ttyS0 panic=-1 rdinit=/init quiet mitigations=off cryptomgr.notests=1 tsc=reliable \
         uroce.addr={v4}/24 uroce.addr6={v6}/64 uroce.mtu={MTU} uroce.port={PORT}"
    )
}

/// A card without offloads: what the guest sends are the frames of the wire, complete with checksums.
fn network_card() -> String {
    let mut card = String::from("virtio-net-pci,netdev=n0,mac=02:00:00:00:00:01,host_mtu=9000,romfile=");
    let offloads = ["csum", "gso", "host_tso4", "host_tso6", "host_ufo", "host_ecn"];
    let receive_offloads = ["guest_csum", "guest_tso4", "guest_tso6", "guest_ufo", "guest_ecn"];
    for feature in offloads.iter().chain(&receive_offloads) {
        card += &format!(",{feature}=off");
    }
    card
}
