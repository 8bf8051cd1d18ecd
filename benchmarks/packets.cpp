// The packet-level network as a plain event loop, one event for the end of each transmission and for each arrival after a latency.
// Reads ports, connections and messages (packets.py writes them), prints packet-hops and times.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <deque>
#include <queue>
#include <vector>

namespace {

constexpr int SEGMENT = 1448, FRAME = 66, PRIORITIES = 8, NONE = -1;
constexpr double LEAST_TIMEOUT = 0.2, GAIN = 1.0 / 16, INITIAL_WINDOW = 10;
constexpr int64_t MOST_UNDER_WAY = (3 << 20) / SEGMENT, RING = 4096;  // segments: the receive window, and bits for it

enum Kind : int32_t { SENT, ARRIVED, TIMEOUT, MESSAGE };

struct Event {
  double time;
  uint64_t order;
  Kind kind;
  int32_t what;
  bool operator<(const Event& other) const {
    return time > other.time || (time == other.time && order > other.order);
  }
};

struct Packet {
  int64_t segment;     // that it carries, or that made the receiver send it
  int64_t cumulative;  // of an acknowledgement: up to where all is there
  double sent;
  int32_t connection, next, size;
  int16_t hop, marks;
  uint8_t priority;
  bool acknowledges, marked, again;
};

struct Queue {
  int32_t first = NONE, last = NONE;
};

struct Port {
  double rate;
  int64_t buffer, mark_above, queued = 0;
  uint32_t waiting = 0;  // a bit for each priority that has packets
  int32_t sending = NONE;
  Queue queues[PRIORITIES];
  std::deque<int32_t> ready;  // of a host's own: the connections that may send, in turn
};

struct Message {
  int64_t first, end, bytes;  // segments
  double began;
};

struct Connection {
  std::vector<int32_t> there, back;  // ports
  double latency;                    // one way, after the first of them
  std::vector<Message> messages;
  // Segments. What is not known to be there below `scanned` is held for lost, and sent again up to `resend`.
  int64_t end = 0, next = 0, cumulative = 0, scanned = 0, resend = 0, recover = 0;
  int64_t known = 0, lost = 0;  // beyond `cumulative`: how many have arrived, how many are still to be sent again
  std::vector<bool> there_is = std::vector<bool>(RING);
  double window = INITIAL_WINDOW, threshold = 1e18, alpha = 0, smoothed = 0, variance = 0, timeout = LEAST_TIMEOUT;
  double deadline = INFINITY;
  bool ready = false, armed = false, recovering = false;
  int64_t round_end = 0, round_acked = 0, round_marked = 0;
  // the receiver's
  int64_t expected = 0;
  size_t delivered = 0;
  int16_t unacknowledged = 0, marks = 0;
  bool marked = false;
  std::vector<bool> received = std::vector<bool>(RING);
};

struct Network {
  std::vector<Port> ports;
  std::vector<Connection> connections;
  std::vector<Packet> packets;
  std::vector<int32_t> unused;
  std::priority_queue<Event> events;
  std::vector<double> completions;  // seconds, of messages
  double now = 0;
  uint64_t order = 0, hops = 0, dropped = 0, marked = 0, resent = 0;

  void plan(double time, Kind kind, int32_t what) { events.push({time, order++, kind, what}); }

  int32_t packet() {
    if (unused.empty()) {
      packets.emplace_back();
      return int32_t(packets.size()) - 1;
    }
    int32_t id = unused.back();
    unused.pop_back();
    return id;
  }

  const std::vector<int32_t>& route(const Packet& p) const {
    const Connection& c = connections[p.connection];
    return p.acknowledges ? c.back : c.there;
  }

  static int size_of(const Connection& c, int64_t segment) {
    auto m = std::upper_bound(c.messages.begin(), c.messages.end(), segment,
                              [](int64_t s, const Message& m) { return s < m.end; });
    return int(std::min<int64_t>(SEGMENT, m->bytes - (segment - m->first) * SEGMENT));
  }

  // ---- ports
  void enqueue(int32_t at, int32_t id) {
    Port& port = ports[at];
    Packet& p = packets[id];
    if (port.queued + p.size > port.buffer) {
      dropped++;
      unused.push_back(id);
      return;
    }
    if (!p.acknowledges && port.queued > port.mark_above) p.marked = true, marked++;
    port.queued += p.size;
    p.next = NONE;
    Queue& queue = port.queues[p.priority];
    (queue.first == NONE ? queue.first : packets[queue.last].next) = id;
    queue.last = id;
    port.waiting |= 1u << p.priority;
    if (port.sending == NONE) transmit(at);
  }

  void transmit(int32_t at) {
    Port& port = ports[at];
    int32_t id = NONE;
    if (port.waiting) {
      int priority = __builtin_ctz(port.waiting);
      Queue& queue = port.queues[priority];
      id = queue.first;
      queue.first = packets[id].next;
      if (queue.first == NONE) port.waiting &= ~(1u << priority);
      port.queued -= packets[id].size;
    } else {
      while (id == NONE && !port.ready.empty()) {
        int32_t c = port.ready.front();
        port.ready.pop_front();
        connections[c].ready = false;
        port.sending = id = take(c);
        if (id != NONE) wake(c);
      }
      if (id == NONE) return;
    }
    port.sending = id;
    plan(now + packets[id].size / port.rate, SENT, at);
  }

  // ---- the sender
  bool may_send(const Connection& c) const {
    int64_t under_way = c.next - c.cumulative - c.known - c.lost;
    return under_way < c.window && (c.lost > 0 || (c.next < c.end && c.next - c.cumulative < MOST_UNDER_WAY));
  }

  void wake(int32_t id) {
    Connection& c = connections[id];
    if (c.ready || !may_send(c)) return;
    c.ready = true;
    Port& nic = ports[c.there[0]];
    nic.ready.push_back(id);
    if (nic.sending == NONE) transmit(c.there[0]);
  }

  int32_t take(int32_t id) {
    Connection& c = connections[id];
    if (!may_send(c)) return NONE;
    int64_t segment = c.next;
    bool again = c.lost > 0;
    if (again) {
      while (c.there_is[c.resend % RING]) c.resend++;
      segment = c.resend++;
      c.lost--;
      resent++;
    } else {
      c.next++;
    }
    int32_t made = packet();
    packets[made] = {segment, 0, now, id, NONE, size_of(c, segment) + FRAME, 0, 0, 1, false, false, again};
    if (c.deadline == INFINITY) arm(id);
    return made;
  }

  void arm(int32_t id) {
    Connection& c = connections[id];
    c.deadline = now + c.timeout;
    if (!c.armed) c.armed = true, plan(c.deadline, TIMEOUT, id);
  }

  void timed_out(int32_t id) {
    Connection& c = connections[id];
    c.armed = false;
    if (c.deadline == INFINITY) return;
    if (now < c.deadline) {
      c.armed = true;
      plan(c.deadline, TIMEOUT, id);
      return;
    }
    c.threshold = std::max(c.window / 2, 2.0);
    c.window = 1;
    c.timeout = std::min(2 * c.timeout, 60.0);
    c.recovering = true;
    c.recover = c.next;
    c.resend = c.cumulative;
    c.scanned = c.next;
    c.lost = c.next - c.cumulative - c.known;
    arm(id);
    wake(id);
  }

  void acknowledged(int32_t id, const Packet& p) {
    Connection& c = connections[id];
    int64_t arrived = 0;
    for (; c.cumulative < p.cumulative; c.cumulative++) arrived += is_there(c, c.cumulative, -1);
    if (p.segment >= c.cumulative) arrived += is_there(c, p.segment, 1);
    c.resend = std::max(c.resend, c.cumulative);
    for (c.scanned = std::max(c.scanned, c.cumulative); c.scanned < p.segment - 2; c.scanned++)
      c.lost += !c.there_is[c.scanned % RING];
    if (!p.again) {
      double sample = now - p.sent;
      c.variance = c.smoothed ? 0.75 * c.variance + 0.25 * std::abs(sample - c.smoothed) : sample / 2;
      c.smoothed = c.smoothed ? 0.875 * c.smoothed + 0.125 * sample : sample;
    }
    if (arrived) {
      c.timeout = c.smoothed + std::max(LEAST_TIMEOUT, 4 * c.variance);
      c.deadline = INFINITY;
      if (c.cumulative < c.next) arm(id);
    }
    if (c.cumulative >= c.recover) c.recovering = false;
    if (c.lost > 0 && !c.recovering) {
      c.recovering = true;
      c.recover = c.next;
      c.window = c.threshold = std::max(c.window / 2, 2.0);
    }
    c.round_acked += arrived;
    c.round_marked += p.marks;
    if (c.cumulative > c.round_end) {
      c.alpha += GAIN * (std::min(1.0, double(c.round_marked) / std::max<int64_t>(1, c.round_acked)) - c.alpha);
      if (c.round_marked && !c.recovering) c.window = c.threshold = std::max(c.window * (1 - c.alpha / 2), 2.0);
      c.round_end = c.next;
      c.round_acked = c.round_marked = 0;
    }
    if (c.window < c.threshold && !p.marks)
      c.window += arrived;
    else if (!c.recovering && !p.marks)
      c.window += arrived / c.window;
    wake(id);
  }

  // Notes that a segment has arrived, and that it is one more (or less) of those beyond `cumulative`; is it news?
  static bool is_there(Connection& c, int64_t segment, int step) {
    bool known = c.there_is[segment % RING];
    if (!known && segment >= c.resend && segment < c.scanned) c.lost--;
    c.there_is[segment % RING] = step > 0;
    if (known != (step > 0)) c.known += step;
    return !known;
  }

  // ---- the receiver
  void received(int32_t id, const Packet& p) {
    Connection& c = connections[id];
    bool in_order = p.segment == c.expected, changed = p.marked != c.marked;
    c.marked = p.marked;
    c.marks += p.marked;
    if (p.segment >= c.expected) c.received[p.segment % RING] = true;
    while (c.received[c.expected % RING]) c.received[c.expected++ % RING] = false;
    bool ended = false;
    for (; c.delivered < c.messages.size() && c.messages[c.delivered].end <= c.expected; c.delivered++, ended = true)
      completions.push_back(now - c.messages[c.delivered].began);
    if (++c.unacknowledged < 2 && in_order && !changed && !ended) return;
    int32_t made = packet();
    packets[made] = {p.segment, c.expected, p.sent, id, NONE, FRAME, 0, c.marks, 0, true, false, p.again};
    c.unacknowledged = c.marks = 0;
    enqueue(c.back[0], made);
  }

  void arrived(int32_t id) {
    Packet p = packets[id];
    if (size_t(p.hop) < route(p).size()) return enqueue(route(p)[p.hop], id);
    unused.push_back(id);
    if (p.acknowledges)
      acknowledged(p.connection, p);
    else
      received(p.connection, p);
  }

  void run() {
    while (!events.empty()) {
      Event e = events.top();
      events.pop();
      now = e.time;
      if (e.kind == SENT) {
        Port& port = ports[e.what];
        int32_t id = port.sending;
        port.sending = NONE;
        hops++;
        if (packets[id].hop++)
          arrived(id);
        else
          plan(now + connections[packets[id].connection].latency, ARRIVED, id);
        if (port.sending == NONE) transmit(e.what);
      } else if (e.kind == ARRIVED) {
        arrived(e.what);
      } else if (e.kind == TIMEOUT) {
        timed_out(e.what);
      } else {
        connections[e.what].end = planned[e.what].front();
        planned[e.what].pop_front();
        wake(e.what);
      }
    }
  }

  std::vector<std::deque<int64_t>> planned;  // by connection: up to where there is something to send, message by message
};

std::vector<int32_t> read_route() {
  int count = 0;
  if (scanf("%d", &count) != 1) exit(1);
  std::vector<int32_t> route(count);
  for (int32_t& port : route)
    if (scanf("%d", &port) != 1) exit(1);
  return route;
}

}  // namespace

int main() {
  Network net;
  int ports, connections, messages;
  if (scanf("%d %d %d", &ports, &connections, &messages) != 3) return 1;
  net.ports.resize(ports);
  for (Port& p : net.ports) {
    long long buffer, mark;
    if (scanf("%lf %lld %lld", &p.rate, &buffer, &mark) != 3) return 1;
    p.buffer = buffer, p.mark_above = mark;
  }
  net.connections.resize(connections);
  net.planned.resize(connections);
  for (Connection& c : net.connections) {
    if (scanf("%lf", &c.latency) != 1) return 1;
    c.there = read_route(), c.back = read_route();
  }
  for (int i = 0; i < messages; i++) {  // in the order of their times
    double at;
    int id;
    long long bytes;
    if (scanf("%lf %d %lld", &at, &id, &bytes) != 3) return 1;
    Connection& c = net.connections[id];
    int64_t first = c.messages.empty() ? 0 : c.messages.back().end;
    c.messages.push_back({first, first + (bytes + SEGMENT - 1) / SEGMENT, bytes, at});
    net.planned[id].push_back(c.messages.back().end);
    net.plan(at, MESSAGE, id);
  }
  std::clock_t began = std::clock();
  net.run();
  double cpu = double(std::clock() - began) / CLOCKS_PER_SEC;
  std::sort(net.completions.begin(), net.completions.end());
  printf("hops=%llu cpu=%.6f delivered=%zu median=%.9f dropped=%llu marked=%llu resent=%llu\n", (unsigned long long)net.hops,
         cpu, net.completions.size(), net.completions[net.completions.size() / 2], (unsigned long long)net.dropped,
         (unsigned long long)net.marked, (unsigned long long)net.resent);
}
