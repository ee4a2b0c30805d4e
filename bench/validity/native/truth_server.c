// A server that knows the truth: it logs when the kernel received each request, and when it sent each part of the
// answer. One thread, one epoll. It shares no code with the product.
//
//   truth_server PORT_FILE LOG [--delay US] [--jitter SHARE] [--slow SHARE TIMES] [--events N] [--gap US]
//                [--hang SHARE] [--busy US] [--accept-busy US] [--write plain|split|merged N|cut]
//                [--until-close]
//
// Every answer comes `delay` after its request was read, times 1 +- jitter; a share of them `TIMES` later. A body with
// `"stream":true` is answered by a stream of `events` content events, `gap` apart, the first after `delay`.
//   plain   each event is one segment (TCP_NODELAY)
//   split   two small writes an event, without TCP_NODELAY: Nagle's algorithm waits for the client's acknowledgement,
//           which a client delays by 40 ms
//   merged  N events in one write
//   cut     the connection ends in the middle, without an end of the chunked body
// With `until-close` the body of a stream has no chunks and ends with the connection.
// `busy` burns CPU per request, `accept-busy` per accepted connection: all that wait are accepted first.
//
// On SIGTERM it writes LOG, one line a request: id, connection, kernel receive time, read time, and for each content
// event (one for a whole answer) the times just before and just after the write, all in ns since 1970. A request
// that was left to hang has none. Where the kernel stamped nothing, its time is that of the read.

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

typedef int64_t ns;
enum write_mode { PLAIN, SPLIT, MERGED, CUT };
struct record { char id[72]; int conn, events, sent; ns received, read; ns *times; };
struct conn { int fd, number, open; unsigned turn; char *in; size_t have, room; ns received; long request; ns first, gap; };
struct timer { ns due; int fd; unsigned turn; };

static double delay = 5000, jitter = 0, slow_share = 0, slow_times = 1, gap = 10000, hang = 0, busy = 0, accept_busy = 0;
static int events = 20, merge = 6, until_close, listener, clockfd, poller, connections;
static enum write_mode mode = PLAIN;
static struct record *records;
static long count, room;
static struct conn *conns[1 << 20];
static struct timer *heap;
static size_t timers, timer_room;
static volatile sig_atomic_t stopped;

static ns now(clockid_t id) { struct timespec t; clock_gettime(id, &t); return t.tv_sec * 1000000000LL + t.tv_nsec; }
static void on_signal(int s) { (void)s; stopped = 1; }
static void die(const char *what) { perror(what); exit(1); }
static void *grow(void *p, size_t size) { if (!(p = realloc(p, size))) die("memory"); return p; }
static void burn(double us) { for (ns end = now(CLOCK_MONOTONIC) + (ns)(us * 1e3); now(CLOCK_MONOTONIC) < end;) ; }
static double uniform(void) {
  static uint64_t x = 0x9E3779B97F4A7C15u;
  x ^= x << 13; x ^= x >> 7; x ^= x << 17;
  return (double)(x >> 11) / 9007199254740992.0;
}

static void push(struct timer t) {
  if (timers == timer_room) heap = grow(heap, (timer_room = timer_room ? 2 * timer_room : 1024) * sizeof *heap);
  size_t i = timers++;
  for (; i && heap[(i - 1) / 2].due > t.due; i = (i - 1) / 2) heap[i] = heap[(i - 1) / 2];
  heap[i] = t;
}

static struct timer pop(void) {
  struct timer top = heap[0], last = heap[--timers];
  size_t i = 0, child;
  while ((child = 2 * i + 1) < timers) {
    if (child + 1 < timers && heap[child + 1].due < heap[child].due) child++;
    if (heap[child].due >= last.due) break;
    heap[i] = heap[child];
    i = child;
  }
  heap[i] = last;
  return top;
}

static void arm(void) {
  ns due = timers ? heap[0].due : 0;
  struct itimerspec at = {.it_value = {due / 1000000000, due % 1000000000}};
  timerfd_settime(clockfd, TFD_TIMER_ABSTIME, &at, NULL);
}

static void close_conn(struct conn *c) {
  conns[c->fd] = NULL;
  close(c->fd);
  free(c->in);
  free(c);
}

static void put(struct conn *c, const char *text, size_t size) {
  while (size) {
    ssize_t n = send(c->fd, text, size, MSG_NOSIGNAL);
    if (n < 0) { if (errno == EINTR) continue; return; }
    text += n; size -= n;
  }
}

static size_t chunk(char *out, const char *text) {
  return until_close ? sprintf(out, "%s", text) : sprintf(out, "%zx\r\n%s\r\n", strlen(text), text);
}
static size_t event(char *out, const char *delta, const char *finish) {
  char text[400];
  sprintf(text, "data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",\"choices\":"
          "[{\"index\":0,\"delta\":%s,\"finish_reason\":%s}]}\n\n", delta, finish);
  return chunk(out, text);
}
static size_t tail(char *out) {
  char text[300];
  size_t n = event(out, "{}", "\"stop\"");
  sprintf(text, "data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",\"choices\":[],"
          "\"usage\":{\"prompt_tokens\":16,\"completion_tokens\":%d,\"total_tokens\":%d}}\n\n", events, 16 + events);
  n += chunk(out + n, text);
  n += chunk(out + n, "data: [DONE]\n\n");
  return until_close ? n : n + sprintf(out + n, "0\r\n\r\n");
}

static void mark(struct record *r, ns before, ns after) {
  r->times[2 * r->sent] = before;
  r->times[2 * r->sent++ + 1] = after;
}

static void send_whole(struct conn *c, struct record *r, int chat) {
  char out[700], body[400] = "hello world, this is a constant answer";
  if (chat)
    sprintf(body, "{\"id\":\"c\",\"object\":\"chat.completion\",\"created\":1,\"model\":\"m\",\"choices\":[{\"index\":0,"
            "\"message\":{\"role\":\"assistant\",\"content\":\"hello\"},\"finish_reason\":\"stop\"}],"
            "\"usage\":{\"prompt_tokens\":16,\"completion_tokens\":1,\"total_tokens\":17}}");
  int n = sprintf(out, "HTTP/1.1 200 OK\r\ncontent-type: %s\r\ncontent-length: %zu\r\n\r\n%s",
                  chat ? "application/json" : "text/plain", strlen(body), body);
  ns before = now(CLOCK_REALTIME);
  put(c, out, n);
  mark(r, before, now(CLOCK_REALTIME));
}

// Sends the next content events of a stream; 0 if it has ended.
static int send_events(struct conn *c, struct record *r) {
  static char out[1 << 20];
  size_t n = 0;
  int group = mode == MERGED ? merge : 1, first = r->sent;
  if (!first) n += sprintf(out, "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n%s\r\n\r\n",
                           until_close ? "connection: close" : "transfer-encoding: chunked");
  if (!first) n += event(out + n, "{\"role\":\"assistant\",\"content\":\"\"}", "null");
  for (int i = 0; i < group && first + i < events; i++) n += event(out + n, "{\"content\":\"abc \"}", "null");
  int last = first + group >= events;
  if (last) n += tail(out + n);
  ns before = now(CLOCK_REALTIME);
  if (mode == SPLIT) { put(c, out, n / 2); put(c, out + n / 2, n - n / 2); } else put(c, out, n);
  ns after = now(CLOCK_REALTIME);
  for (int i = 0; i < group && r->sent < events; i++) mark(r, before, after);
  if ((mode == CUT && r->sent >= events / 2 && !last) || (until_close && last)) { close_conn(c); return 0; }
  return !last;
}

static void due(struct timer t) {
  struct conn *c = conns[t.fd];
  if (!c || c->turn != t.turn || c->request < 0) return;
  struct record *r = &records[c->request];
  if (r->events == 0) { send_whole(c, r, c->gap != 0); c->request = -1; return; }
  unsigned step = mode == MERGED ? merge : 1;
  if (send_events(c, r)) push((struct timer){c->first + (ns)(r->sent + step - 1) * c->gap, t.fd, t.turn});
  else if (conns[t.fd] == c) c->request = -1;
}

static char *find(char *in, const char *name) { char *at = strcasestr(in, name); return at ? at + strlen(name) : NULL; }

// Takes a whole request from the input; 0 if it is incomplete.
static int take(struct conn *c) {
  c->in[c->have] = 0;
  char *end = strstr(c->in, "\r\n\r\n");
  if (!end) return 0;
  end += 4;
  char *length = find(c->in, "\r\ncontent-length:"), *id = find(c->in, "\r\nx-request-id:");
  size_t head = end - c->in, body = length && length < end ? strtoul(length, NULL, 10) : 0;
  if (c->have < head + body) return 0;
  int post = !strncmp(c->in, "POST", 4);
  char *flag = body ? memmem(end, body, "\"stream\"", 8) : NULL;
  int streamed = flag && (flag += 8, flag += strspn(flag, ": \t"), !strncmp(flag, "true", 4));
  if (count == room) records = grow(records, (room = room ? 2 * room : 4096) * sizeof *records);
  struct record *r = &records[count];
  *r = (struct record){.conn = c->number, .received = c->received, .read = now(CLOCK_REALTIME), .events = streamed ? events : 0};
  if (id && id < end) sscanf(id, " %71[^\r\n]", r->id);
  else strcpy(r->id, "-");
  r->times = grow(NULL, 2 * (streamed ? events : 1) * sizeof(ns));
  c->request = count++;
  c->turn++;
  c->gap = streamed ? (ns)(gap * 1e3) : post;
  memmove(c->in, end + body, c->have -= head + body);
  if (busy) burn(busy);
  if (uniform() < hang) return 1;
  double wait = delay * (1 + jitter * (2 * uniform() - 1));
  if (uniform() < slow_share) wait *= slow_times;
  c->first = now(CLOCK_MONOTONIC) + (ns)(wait * 1e3);
  struct timer t = {c->first + (streamed && mode == MERGED ? (merge - 1) * c->gap : 0), c->fd, c->turn};
  if (wait <= 0 && !streamed) due(t);
  else push(t);
  return 1;
}

static void readable(struct conn *c) {
  for (;;) {
    if (c->room - c->have < 65536) c->in = grow(c->in, (c->room = c->have + 131072) + 1);
    char control[256];
    struct iovec part = {c->in + c->have, c->room - c->have};
    struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    ssize_t n = recvmsg(c->fd, &m, MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) return;
    if (n <= 0) return close_conn(c);
    c->received = now(CLOCK_REALTIME);
    for (struct cmsghdr *h = CMSG_FIRSTHDR(&m); h; h = CMSG_NXTHDR(&m, h))
      if (h->cmsg_level == SOL_SOCKET && h->cmsg_type == SCM_TIMESTAMPNS) {
        struct timespec t;
        memcpy(&t, CMSG_DATA(h), sizeof t);
        c->received = t.tv_sec * 1000000000LL + t.tv_nsec;
      }
    c->have += n;
    while (c->have && take(c)) ;
    if (n < (ssize_t)part.iov_len) return;
  }
}

static void accept_all(void) {
  for (int fd; (fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC)) >= 0;) {
    int on = 1;
    if (mode != SPLIT) setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof on);
    struct conn *c = conns[fd] = grow(NULL, sizeof *c);
    *c = (struct conn){.fd = fd, .number = connections++, .request = -1};
    struct epoll_event e = {.events = EPOLLIN, .data.fd = fd};
    epoll_ctl(poller, EPOLL_CTL_ADD, fd, &e);
    if (accept_busy) burn(accept_busy);
  }
}

static void write_log(const char *path) {
  FILE *f = fopen(path, "w");
  if (!f) die(path);
  for (long i = 0; i < count; i++) {
    struct record *r = &records[i];
    fprintf(f, "%s %d %ld %ld", r->id, r->conn, (long)r->received, (long)r->read);
    for (int k = 0; k < 2 * r->sent; k++) fprintf(f, " %ld", (long)r->times[k]);
    fputc('\n', f);
  }
  fprintf(f, "end %d\n", connections);
  if (fclose(f)) die(path);
}

static void options(int n, char **v) {
  struct { const char *name; double *to; } numbers[] = {
    {"--delay", &delay}, {"--jitter", &jitter}, {"--gap", &gap}, {"--hang", &hang}, {"--busy", &busy},
    {"--accept-busy", &accept_busy}};
  for (int i = 3; i < n; i++) {
    int known = 0;
    for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++)
      if (!strcmp(v[i], numbers[k].name) && i + 1 < n) *numbers[k].to = atof(v[++i]), known = 1, k = 99;
    if (known) continue;
    if (!strcmp(v[i], "--until-close")) until_close = 1;
    else if (!strcmp(v[i], "--events") && i + 1 < n) events = atoi(v[++i]);
    else if (!strcmp(v[i], "--slow") && i + 2 < n) slow_share = atof(v[++i]), slow_times = atof(v[++i]);
    else if (!strcmp(v[i], "--write") && i + 1 < n) {
      const char *word = v[++i];
      mode = !strcmp(word, "split") ? SPLIT : !strcmp(word, "merged") ? MERGED : !strcmp(word, "cut") ? CUT : PLAIN;
      if (mode == MERGED && i + 1 < n) merge = atoi(v[++i]);
    } else { fprintf(stderr, "unknown: %s\n", v[i]); exit(2); }
  }
}

static void listen_on(const char *port_file) {
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t size = sizeof at;
  int on = 1;
  listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  // Accepted sockets inherit it, so that what came before the accept is stamped too.
  setsockopt(listener, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof on);
  if (bind(listener, (void *)&at, sizeof at) || listen(listener, 65535)) die("listen");
  getsockname(listener, (void *)&at, &size);
  FILE *f = fopen(port_file, "w");
  if (!f) die(port_file);
  fprintf(f, "%d\n", ntohs(at.sin_port));
  fclose(f);
}

int main(int n, char **v) {
  if (n < 3) die("usage");
  options(n, v);
  struct sigaction act = {.sa_handler = on_signal};
  sigaction(SIGTERM, &act, NULL);
  struct rlimit files;
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  poller = epoll_create1(EPOLL_CLOEXEC);
  clockfd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
  listen_on(v[1]);
  struct epoll_event e = {.events = EPOLLIN, .data.fd = listener}, got[256];
  epoll_ctl(poller, EPOLL_CTL_ADD, listener, &e);
  e.data.fd = clockfd;
  epoll_ctl(poller, EPOLL_CTL_ADD, clockfd, &e);
  while (!stopped) {
    int ready = epoll_wait(poller, got, 256, -1);
    // New connections first: that is what "greedy" means, and it makes no difference otherwise.
    for (int i = 0; i < ready; i++) if (got[i].data.fd == listener) accept_all();
    for (int i = 0; i < ready; i++) {
      int fd = got[i].data.fd;
      if (fd != listener && fd != clockfd && conns[fd]) readable(conns[fd]);
    }
    for (ns t = now(CLOCK_MONOTONIC); timers && heap[0].due <= t;) due(pop());
    uint64_t ticks;
    if (read(clockfd, &ticks, sizeof ticks) < 0 && errno != EAGAIN) break;
    arm();
  }
  write_log(v[2]);
}
