//! Which of the CRC loops this CPU can run.

use core::sync::atomic::{AtomicU8, Ordering};

use super::{Pass, portable};
#[cfg(target_arch = "x86_64")]
use super::{fold128, fold256, fold512};

#[cfg(target_arch = "x86_64")]
cpufeatures::new!(clmul, "avx", "pclmulqdq");
#[cfg(target_arch = "x86_64")]
cpufeatures::new!(avx2, "avx2");
#[cfg(target_arch = "x86_64")]
cpufeatures::new!(avx512, "avx512f");

/// A CRC loop that this CPU has the instructions for: no other value is ever made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Kernel(Isa);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum Isa {
    Portable = 1,
    /// 16 bytes a step: AVX, PCLMULQDQ.
    #[cfg(target_arch = "x86_64")]
    Fold128 = 2,
    /// 32 bytes a step: AVX2, VPCLMULQDQ.
    #[cfg(target_arch = "x86_64")]
    Fold256 = 3,
    /// 64 bytes a step: AVX-512, VPCLMULQDQ.
    #[cfg(target_arch = "x86_64")]
    Fold512 = 4,
}

static BEST: AtomicU8 = AtomicU8::new(0);

impl Kernel {
    /// The fastest; asks the CPU once and remembers.
    #[inline]
    pub(crate) fn best() -> Self {
        match BEST.load(Ordering::Relaxed) {
            #[cfg(target_arch = "x86_64")]
            4 => Self(Isa::Fold512),
            #[cfg(target_arch = "x86_64")]
            3 => Self(Isa::Fold256),
            #[cfg(target_arch = "x86_64")]
            2 => Self(Isa::Fold128),
            1 => Self(Isa::Portable),
            _ => Self::choose(),
        }
    }

    #[cold]
    fn choose() -> Self {
        let best = Self::supported().last().unwrap_or(Self(Isa::Portable));
        BEST.store(best.0 as u8, Ordering::Relaxed);
        best
    }

    /// All that this CPU can run, slowest first.
    pub(crate) fn supported() -> impl Iterator<Item = Self> {
        let all = [
            (Isa::Portable, true),
            #[cfg(target_arch = "x86_64")]
            (Isa::Fold128, clmul::get()),
            #[cfg(target_arch = "x86_64")]
            (Isa::Fold256, clmul::get() && has_avx2() && has_vpclmulqdq()),
            #[cfg(target_arch = "x86_64")]
            (Isa::Fold512, clmul::get() && avx512::get() && has_vpclmulqdq()),
        ];
        all.into_iter().filter(|(_, usable)| *usable).map(|(isa, _)| Self(isa))
    }

    /// The CRC register after all bytes of `pass`.
    #[inline]
    pub(crate) fn run<const COPY: bool>(self, crc: u32, pass: &mut Pass<'_, COPY>) -> u32 {
        match self.0 {
            Isa::Portable => portable::crc(crc, pass),
            #[cfg(target_arch = "x86_64")]
            // SAFETY: a kernel of this kind is made only where `supported` found its instructions.
            Isa::Fold128 => unsafe { fold128::crc(crc, pass) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: as above.
            Isa::Fold256 => unsafe { fold256::crc(crc, pass) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: as above.
            Isa::Fold512 => unsafe { fold512::crc(crc, pass) },
        }
    }
}

/// Whether the CPU and the system have 32-byte registers.
#[cfg(target_arch = "x86_64")]
#[inline]
pub(crate) fn has_avx2() -> bool {
    avx2::get()
}

/// `cpufeatures` asks for 512-bit registers too, which a 256-bit VPCLMULQDQ does without.
#[cfg(target_arch = "x86_64")]
#[allow(unused_unsafe, reason = "safe in newer Rust, not yet in the oldest that is supported")]
fn has_vpclmulqdq() -> bool {
    // SAFETY: every x86-64 CPU has the instruction.
    let features = unsafe { core::arch::x86_64::__cpuid_count(7, 0) };
    features.ecx & 1 << 10 != 0
}
