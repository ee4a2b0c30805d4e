// A server that is not the limit: one thread, and for each request one constant answer. It reads of a request where it
// ends, and its path.
//
//   constant_server PORT PATH FILE [PATH FILE]...
//
// Listens on 127.0.0.1:PORT. A request whose path begins with PATH is answered with the bytes of FILE, head and body;
// any other closes its connection, as does one that is larger than 64 KiB or has no length. Who does not read its answer
// holds up all others.

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { LARGEST = 1 << 16, EVENTS = 256, ANSWERS = 8 };

static struct { const char *path; size_t path_length; char *bytes; size_t length; } answers[ANSWERS];
static int answers_count;
// The start of a request whose end has not arrived yet, by descriptor.
static struct { char *bytes; size_t length; } started[LARGEST];

static void fail(const char *what) { perror(what); exit(1); }

static void read_answer(const char *path, const char *name) {
  if (answers_count == ANSWERS) { fprintf(stderr, "at most %d answers\n", ANSWERS); exit(1); }
  FILE *file = fopen(name, "rb");
  if (!file) fail(name);
  char *bytes = malloc(LARGEST);
  size_t length = fread(bytes, 1, LARGEST, file);
  if (length == LARGEST || fclose(file)) { fprintf(stderr, "%s is too large\n", name); exit(1); }
  answers[answers_count].path = path, answers[answers_count].path_length = strlen(path);
  answers[answers_count].bytes = bytes, answers[answers_count++].length = length;
}

// The length of the request at the start of `bytes`; 0 if it is not whole, -1 if it cannot be read.
static long whole(const char *bytes, size_t length) {
  const char *end = memmem(bytes, length, "\r\n\r\n", 4);
  if (!end) return 0;
  size_t head = end + 4 - bytes, body = 0;
  if (memcmp(bytes, "GET ", 4)) {
    static const char NAME[] = "\r\ncontent-length:";
    const char *line = bytes;
    while (line < end && strncasecmp(line, NAME, sizeof NAME - 1)) line = memmem(line + 1, end - line + 1, "\r\n", 2);
    if (line >= end) return -1;
    body = strtoul(line + sizeof NAME - 1, NULL, 10);
  }
  return head + body <= length ? (long)(head + body) : 0;
}

static int send_all(int socket, const char *bytes, size_t length) {
  while (length) {
    ssize_t sent = send(socket, bytes, length, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno != EAGAIN) return 0;
    if (sent < 0) poll(&(struct pollfd){socket, POLLOUT, 0}, 1, -1);
    else bytes += sent, length -= sent;
  }
  return 1;
}

static int answer(int socket, const char *request) {
  const char *path = strchr(request, ' ');
  for (int n = 0; path && n < answers_count; n++)
    if (!strncmp(path + 1, answers[n].path, answers[n].path_length))
      return send_all(socket, answers[n].bytes, answers[n].length);
  return 0;
}

static void keep(int socket, const char *bytes, size_t length) {
  if (length && !started[socket].bytes) started[socket].bytes = malloc(LARGEST);
  if (length) memmove(started[socket].bytes, bytes, length);
  started[socket].length = length;
}

static int serve(int socket) {
  static char bytes[LARGEST + 1];
  size_t length = started[socket].length;
  if (length == LARGEST) return 0;
  memcpy(bytes, started[socket].bytes ? started[socket].bytes : "", length);
  ssize_t got = recv(socket, bytes + length, LARGEST - length, MSG_DONTWAIT);
  if (got <= 0) return got < 0 && errno == EAGAIN;
  length += got;
  bytes[length] = 0;
  char *next = bytes;
  long size;
  while ((size = whole(next, length)) > 0) {
    if (!answer(socket, next)) return 0;
    next += size, length -= size;
  }
  keep(socket, next, length);
  return size == 0;
}

int main(int n, char **v) {
  if (n < 4 || n % 2) { fprintf(stderr, "constant_server PORT PATH FILE [PATH FILE]...\n"); return 2; }
  for (int at = 2; at < n; at += 2) read_answer(v[at], v[at + 1]);
  int on = 1, listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), set = epoll_create1(0);
  struct sockaddr_in address = {AF_INET, htons(atoi(v[1])), {htonl(INADDR_LOOPBACK)}, {0}};
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (bind(listener, (struct sockaddr *)&address, sizeof address) || listen(listener, 4096)) fail("listen");
  epoll_ctl(set, EPOLL_CTL_ADD, listener, &(struct epoll_event){EPOLLIN, {.fd = listener}});
  for (;;) {
    struct epoll_event ready[EVENTS];
    int count = epoll_wait(set, ready, EVENTS, -1);
    for (int at = 0; at < count; at++) {
      int socket = ready[at].data.fd;
      if (socket != listener) {
        if (!serve(socket)) keep(socket, "", 0), close(socket);
        continue;
      }
      if ((socket = accept(listener, NULL, NULL)) < 0) continue;
      if (socket >= LARGEST) { close(socket); continue; }
      setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
      epoll_ctl(set, EPOLL_CTL_ADD, socket, &(struct epoll_event){EPOLLIN, {.fd = socket}});
    }
  }
}
