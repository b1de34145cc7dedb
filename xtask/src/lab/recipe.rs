//! What the guest is made of. Everything that shapes its base image is a constant here and part of the image's
//! name, so a changed recipe builds a new image.

use std::hash::{DefaultHasher, Hash, Hasher};

/// Debian release the guest's programs come from: the release with rdma-core 44.
pub(super) const RELEASE: &str = "bookworm";

/// Kernels to look for, best first: the 6.12 of the backports knows ATOMIC WRITE and large messages, the 6.1 of the
/// release itself does as well as it can.
pub(super) const KERNELS: &[&str] = &["linux-image-6.12.", "linux-image-6.1."];

/// Programs in the guest.
pub(super) const PACKAGES: &[&str] = &[
    "ethtool",
    "ibverbs-providers",
    "ibverbs-utils",
    "infiniband-diags",
    "iperf3",
    "iproute2",
    "iputils-ping",
    "kmod",
    "perftest",
    "python3-pyverbs",
    "rdma-core",
    "rdmacm-utils",
    "tcpdump",
    "udev",
];

/// Kernel modules the guest loads or may load; what they depend on comes along.
pub(super) const MODULES: &[&str] = &[
    "9pnet_virtio",
    "crc32-pclmul",
    "crc32_generic",
    "ib_umad",
    "ib_uverbs",
    "rdma_rxe",
    "rdma_ucm",
    "sch_netem",
    "tun",
    "veth",
    "virtio_net",
    "virtio_pci",
];

/// Folders nobody reads in the guest; the smaller the image, the faster it boots under emulation.
pub(super) const UNUSED: &[&str] = &[
    "etc/udev/hwdb.bin",
    "usr/lib/udev/hwdb.bin",
    "usr/lib/udev/hwdb.d",
    "usr/share/doc",
    "usr/share/locale",
    "usr/share/man",
    "usr/share/perl",
    "usr/share/zoneinfo",
    "var/cache/apt",
    "var/lib/apt/lists",
];

/// Raised when the building steps change in a way the constants do not show.
const STEPS: u32 = 1;

/// A name for the recipe as it is now.
pub(super) fn fingerprint() -> String {
    let mut hasher = DefaultHasher::new();
    (STEPS, RELEASE, KERNELS, PACKAGES, MODULES, UNUSED).hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_fingerprint_is_stable_within_a_build() {
        assert_eq!(super::fingerprint(), super::fingerprint());
        assert_eq!(super::fingerprint().len(), 16);
    }
}
