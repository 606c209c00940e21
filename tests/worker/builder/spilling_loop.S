// The second of the two loops has more multiply-adds. It loads twice from the stack and stores there once.
  .text
  .globl spilling_loop
spilling_loop:
.Lfirst:
  vfmadd231ps (%rsi), %ymm4, %ymm0
  decl %ecx
  jnz .Lfirst
.Lsecond:
  vmovups -32(%rsp), %ymm4
  vfmadd231ps -64(%rsp), %ymm4, %ymm0
  vfmadd231ps %ymm5, %ymm4, %ymm1
  vmovups %ymm1, -96(%rsp)
  decl %edx
  jnz .Lsecond
  ret
  .section .note.GNU-stack,"",@progbits
