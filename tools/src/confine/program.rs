//! Assembles programs for the kernel's filter of system calls, instruction by instruction.
//!
//! This file knows how to encode a decision, not which decisions to make. A call that is not native (of another
//! architecture, or with an x32 number) kills the process, because its number means something else.

use libc::sock_filter;

/// Offsets at which the kernel stores the call's number, the architecture and the arguments.
const NUMBER: u32 = 0;
const ARCHITECTURE: u32 = 4;
const ARGUMENTS: u32 = 16;

const LOAD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
const AND: u16 = (libc::BPF_ALU | libc::BPF_AND | libc::BPF_K) as u16;
const EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
const AT_LEAST: u16 = (libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K) as u16;
const ANY_BIT: u16 = (libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K) as u16;
const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;

#[cfg(target_arch = "x86_64")]
const NATIVE: u32 = 0xC000_003E;
#[cfg(target_arch = "aarch64")]
const NATIVE: u32 = 0xC000_00B7;
#[cfg(target_arch = "riscv64")]
const NATIVE: u32 = 0xC000_00F3;

/// The first x32 number on x86-64. Other architectures do not use these numbers.
const X32: u32 = 0x4000_0000;

/// The condition on which a call is refused. It tests only the low half of an argument.
#[derive(Clone, Copy, Debug)]
pub(super) enum When {
    Always,
    /// The argument has at least one of these bits.
    AnyBit {
        argument: u32,
        bits: u32,
    },
    /// Each of the two arguments has at least one of its bits.
    AnyBits {
        arguments: [u32; 2],
        bits: [u32; 2],
    },
    /// The argument equals this value.
    Is {
        argument: u32,
        value: u32,
    },
    /// The argument differs from this value.
    IsNot {
        argument: u32,
        value: u32,
    },
    /// The masked argument equals none of these values.
    NoneOf {
        argument: u32,
        mask: u32,
        values: &'static [u32],
    },
}

/// A refused call, and the error that the caller gets.
#[derive(Clone, Copy, Debug)]
pub(super) struct Refusal {
    pub number: i64,
    pub when: When,
    pub errno: i32,
}

/// Returns the program that refuses these calls and allows all others.
pub(super) fn assemble(refusals: &[Refusal]) -> Vec<sock_filter> {
    let mut program = vec![
        load(ARCHITECTURE),
        jump(EQUAL, NATIVE, 1, 0),
        give(libc::SECCOMP_RET_KILL_PROCESS),
        load(NUMBER),
        jump(AT_LEAST, X32, 0, 1),
        give(libc::SECCOMP_RET_KILL_PROCESS),
    ];
    for refusal in refusals {
        let body = body_of(refusal);
        // Skipped if the call is another one. A jump reaches 255 instructions, and every body is shorter.
        program.push(jump(EQUAL, refusal.number as u32, 0, body.len() as u8));
        program.extend(body);
    }
    program.push(give(libc::SECCOMP_RET_ALLOW));
    program
}

/// The instructions for a call with this number. They end with the number loaded again, or always refuse.
fn body_of(refusal: &Refusal) -> Vec<sock_filter> {
    let refuse = give(libc::SECCOMP_RET_ERRNO | (refusal.errno as u32 & libc::SECCOMP_RET_DATA));
    let low_half = |argument: u32| {
        let first = ARGUMENTS + 8 * argument;
        load(if cfg!(target_endian = "big") { first + 4 } else { first })
    };
    match refusal.when {
        When::Always => vec![refuse],
        When::AnyBit { argument, bits } => {
            vec![low_half(argument), jump(ANY_BIT, bits, 0, 1), refuse, load(NUMBER)]
        }
        When::AnyBits { arguments: [first, second], bits } => vec![
            low_half(first),
            jump(ANY_BIT, bits[0], 0, 3),
            low_half(second),
            jump(ANY_BIT, bits[1], 0, 1),
            refuse,
            load(NUMBER),
        ],
        When::Is { argument, value } => {
            vec![low_half(argument), jump(EQUAL, value, 0, 1), refuse, load(NUMBER)]
        }
        When::IsNot { argument, value } => {
            vec![low_half(argument), jump(EQUAL, value, 1, 0), refuse, load(NUMBER)]
        }
        When::NoneOf { argument, mask, values } => {
            let mut body =
                vec![low_half(argument), sock_filter { code: AND, jt: 0, jf: 0, k: mask }];
            for (index, value) in values.iter().enumerate() {
                // Skips the remaining comparisons and the refusal.
                let rest = (values.len() - index) as u8;
                body.push(jump(EQUAL, *value, rest, 0));
            }
            body.extend([refuse, load(NUMBER)]);
            body
        }
    }
}

fn load(offset: u32) -> sock_filter {
    sock_filter { code: LOAD, jt: 0, jf: 0, k: offset }
}

fn jump(code: u16, value: u32, then: u8, otherwise: u8) -> sock_filter {
    sock_filter { code, jt: then, jf: otherwise, k: value }
}

fn give(action: u32) -> sock_filter {
    sock_filter { code: RETURN, jt: 0, jf: 0, k: action }
}

/// The program in the format that bubblewrap reads.
pub(super) fn bytes(program: &[sock_filter]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(program.len() * 8);
    for instruction in program {
        bytes.extend(instruction.code.to_ne_bytes());
        bytes.extend([instruction.jt, instruction.jf]);
        bytes.extend(instruction.k.to_ne_bytes());
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the kernel would decide about a call.
    fn decide(program: &[sock_filter], number: u32, arguments: [u32; 3]) -> u32 {
        let mut accumulator = 0;
        let mut at = 0;
        loop {
            let it = program[at];
            at += 1;
            let by = |holds: bool| if holds { it.jt } else { it.jf };
            match it.code {
                LOAD => {
                    accumulator = match it.k {
                        NUMBER => number,
                        ARCHITECTURE => NATIVE,
                        offset => arguments[((offset - ARGUMENTS) / 8) as usize],
                    }
                }
                AND => accumulator &= it.k,
                EQUAL => at += usize::from(by(accumulator == it.k)),
                AT_LEAST => at += usize::from(by(accumulator >= it.k)),
                ANY_BIT => at += usize::from(by(accumulator & it.k != 0)),
                RETURN => return it.k,
                other => panic!("unknown instruction {other}"),
            }
        }
    }

    #[test]
    fn each_condition_refuses_what_it_says_and_nothing_else() {
        let refusal = |number, when| Refusal { number, when, errno: 7 };
        let program = assemble(&[
            refusal(1, When::Always),
            refusal(2, When::AnyBit { argument: 0, bits: 6 }),
            refusal(3, When::Is { argument: 1, value: 9 }),
            refusal(4, When::IsNot { argument: 0, value: 0 }),
            refusal(5, When::NoneOf { argument: 0, mask: 15, values: &[2, 10] }),
            refusal(5, When::NoneOf { argument: 1, mask: 15, values: &[1] }),
            refusal(7, When::AnyBits { arguments: [1, 2], bits: [4, 8] }),
        ]);
        let refused = libc::SECCOMP_RET_ERRNO | 7;
        let check = |number, arguments, expected| {
            assert_eq!(decide(&program, number, arguments), expected, "{number} {arguments:?}");
        };
        check(1, [0, 0, 0], refused);
        check(2, [4, 0, 0], refused);
        check(2, [1, 0, 0], libc::SECCOMP_RET_ALLOW);
        check(3, [0, 9, 0], refused);
        check(3, [9, 0, 0], libc::SECCOMP_RET_ALLOW);
        check(4, [1, 0, 0], refused);
        check(4, [0, 5, 0], libc::SECCOMP_RET_ALLOW);
        check(5, [2, 1, 0], libc::SECCOMP_RET_ALLOW);
        check(5, [10 | 16, 1 | 32, 0], libc::SECCOMP_RET_ALLOW);
        check(5, [3, 1, 0], refused);
        check(5, [2, 2, 0], refused);
        check(6, [0, 0, 0], libc::SECCOMP_RET_ALLOW);
        check(7, [0, 4, 9], refused);
        check(7, [8, 4, 7], libc::SECCOMP_RET_ALLOW);
        check(7, [4, 3, 8], libc::SECCOMP_RET_ALLOW);
        check(X32 + 6, [0, 0, 0], libc::SECCOMP_RET_KILL_PROCESS);
    }
}
