// Starts a program in a sandbox that refuses receive time stamps of the kernel: setsockopt(SOL_SOCKET, SO_TIMESTAMP,
// SO_TIMESTAMPNS or SO_TIMESTAMPING) fails with EPERM, as under some container runtimes.
//
//   refuse_stamps PROGRAM ARGUMENTS...

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define IF_EQUAL(value, yes, no) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, yes, no)

int main(int n, char **v) {
  // Options 29, 35 and 37, and their variants for 64-bit time from 63 to 65.
  struct sock_filter filter[] = {
    LOAD(nr), IF_EQUAL(__NR_setsockopt, 0, 10),
    LOAD(args[1]), IF_EQUAL(SOL_SOCKET, 0, 8),
    LOAD(args[2]),
    IF_EQUAL(29, 5, 0), IF_EQUAL(35, 4, 0), IF_EQUAL(37, 3, 0),
    IF_EQUAL(63, 2, 0), IF_EQUAL(64, 1, 0), IF_EQUAL(65, 0, 1),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
  if (n < 2) return fprintf(stderr, "usage: refuse_stamps PROGRAM ARGUMENTS...\n"), 2;
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
    return perror("seccomp"), 2;
  execvp(v[1], v + 1);
  return perror(v[1]), 2;
}
