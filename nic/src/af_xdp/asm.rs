//! An assembler for the few instructions of the kernel's BPF machine that the steering program needs.

/// A register. `R0` takes results, `R1` to `R5` arguments (lost in a call), `R6` to `R9` survive calls.
#[derive(Clone, Copy, Debug)]
#[repr(u8)]
pub(super) enum Register {
    R0 = 0,
    R1 = 1,
    R2 = 2,
    R3 = 3,
    R4 = 4,
    R5 = 5,
    R6 = 6,
}

/// Width of a load from memory.
#[derive(Clone, Copy, Debug)]
#[repr(u8)]
pub(super) enum Width {
    Word = 0x00,
    Half = 0x08,
    Byte = 0x10,
}

/// One instruction as bpf(2) takes it: `struct bpf_insn` of the kernel's ABI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub(super) struct Instruction {
    opcode: u8,
    /// Destination in the low four bits, source in the high four on little-endian machines.
    registers: u8,
    offset: i16,
    immediate: i32,
}

/// A place to jump to, bound by [`Assembler::bind`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Label(usize);

/// Collects instructions and resolves jumps.
#[derive(Debug, Default)]
pub(super) struct Assembler {
    code: Vec<Instruction>,
    labels: Vec<Option<usize>>,
    /// Which instruction jumps to which label.
    jumps: Vec<(usize, Label)>,
}

impl Assembler {
    pub(super) fn label(&mut self) -> Label {
        self.labels.push(None);
        Label(self.labels.len() - 1)
    }

    /// The next instruction is where jumps to `label` land.
    pub(super) fn bind(&mut self, label: Label) {
        self.labels[label.0] = Some(self.code.len());
    }

    /// `to = *(base + offset)`, without sign.
    pub(super) fn load(&mut self, width: Width, to: Register, base: Register, offset: i16) {
        self.push(0x61 | width as u8, to, Some(base), offset, 0);
    }

    pub(super) fn copy(&mut self, to: Register, from: Register) {
        self.push(0xbf, to, Some(from), 0, 0);
    }

    pub(super) fn set(&mut self, to: Register, value: i32) {
        self.push(0xb7, to, None, 0, value);
    }

    pub(super) fn add(&mut self, to: Register, value: i32) {
        self.push(0x07, to, None, 0, value);
    }

    pub(super) fn add_register(&mut self, to: Register, from: Register) {
        self.push(0x0f, to, Some(from), 0, 0);
    }

    pub(super) fn and(&mut self, to: Register, value: i32) {
        self.push(0x57, to, None, 0, value);
    }

    pub(super) fn shift_left(&mut self, to: Register, bits: i32) {
        self.push(0x67, to, None, 0, bits);
    }

    pub(super) fn jump_if_equal(&mut self, left: Register, value: i32, to: Label) {
        self.jump(0x15, left, None, value, to);
    }

    pub(super) fn jump_unless_equal(&mut self, left: Register, value: i32, to: Label) {
        self.jump(0x55, left, None, value, to);
    }

    /// Jumps when `left` is above `right`, both without sign.
    pub(super) fn jump_if_above(&mut self, left: Register, right: Register, to: Label) {
        self.jump(0x2d, left, Some(right), 0, to);
    }

    /// `to` = the map behind a file descriptor. Takes two instructions' room.
    pub(super) fn load_map(&mut self, to: Register, fd: i32) {
        const MAP_FD: u8 = 1;
        self.code.push(Instruction {
            opcode: 0x18,
            registers: packed(to as u8, MAP_FD),
            offset: 0,
            immediate: fd,
        });
        self.code.push(Instruction { opcode: 0, registers: 0, offset: 0, immediate: 0 });
    }

    /// Calls a helper function of the kernel by its number.
    pub(super) fn call(&mut self, helper: i32) {
        self.push(0x85, Register::R0, None, 0, helper);
    }

    pub(super) fn exit(&mut self) {
        self.push(0x95, Register::R0, None, 0, 0);
    }

    /// The program, with every jump resolved.
    ///
    /// # Panics
    /// When a label was used and never bound.
    pub(super) fn finish(mut self) -> Vec<Instruction> {
        for &(at, label) in &self.jumps {
            let target = self.labels[label.0].expect("every label used is bound");
            // Counted from the instruction after the jump.
            self.code[at].offset = i16::try_from(target as i64 - at as i64 - 1).expect("a short program");
        }
        self.code
    }

    fn jump(&mut self, opcode: u8, left: Register, right: Option<Register>, value: i32, to: Label) {
        self.jumps.push((self.code.len(), to));
        self.push(opcode, left, right, 0, value);
    }

    fn push(&mut self, opcode: u8, to: Register, from: Option<Register>, offset: i16, immediate: i32) {
        let registers = packed(to as u8, from.map_or(0, |from| from as u8));
        self.code.push(Instruction { opcode, registers, offset, immediate });
    }
}

const fn packed(to: u8, from: u8) -> u8 {
    if cfg!(target_endian = "little") { from << 4 | to } else { to << 4 | from }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jumps_count_from_the_instruction_after_them() {
        let mut asm = Assembler::default();
        let (start, end) = (asm.label(), asm.label());
        asm.bind(start);
        asm.jump_if_equal(Register::R1, 7, end);
        asm.jump_unless_equal(Register::R1, 8, start);
        asm.bind(end);
        asm.exit();
        let offsets: Vec<_> = asm.finish().iter().map(|instruction| instruction.offset).collect();
        assert_eq!(offsets, [1, -2, 0]);
    }

    #[test]
    fn loads_encode_width_and_registers() {
        let mut asm = Assembler::default();
        asm.load(Width::Half, Register::R5, Register::R2, 12);
        asm.load_map(Register::R1, 42);
        let code = asm.finish();
        assert_eq!((code[0].opcode, code[0].offset), (0x69, 12));
        assert_eq!(code[0].registers, packed(5, 2));
        assert_eq!((code[1].opcode, code[1].registers, code[1].immediate), (0x18, packed(1, 1), 42));
        assert_eq!(code.len(), 3);
    }
}
