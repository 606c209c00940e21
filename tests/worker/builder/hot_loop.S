// A cold loop around a hot one. The hot loop has 2 loads for 4 multiply-adds, one of them a memory operand, and does not use the stack.
  .text
  .globl hot_loop
hot_loop:
  pushq %rbx
.Louter:
  movq (%rsp), %rax
  movl $10, %ecx
.Linner:
  vbroadcastss (%rdi), %ymm4
  vfmadd231ps (%rsi), %ymm4, %ymm0
  vfmadd231ps %ymm5, %ymm4, %ymm1
  vfmadd231ps %ymm5, %ymm4, %ymm2
  vfmadd231ps %ymm5, %ymm4, %ymm3
  addq $4, %rdi
  decl %ecx
  jnz .Linner
  decl %edx
  jnz .Louter
  popq %rbx
  ret
  .section .note.GNU-stack,"",@progbits
