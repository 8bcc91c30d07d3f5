// The opponent: RTop-kF (k = 1) with FTPL on flipped relevance, DCG and the regret curve, fused
// by hand into one loop for this one game. It makes the draws of keyhole.draw and ends with the
// same score; bench/game.py refuses to run if it does not.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <vector>

#ifdef __AVX512DQ__
#include <immintrin.h>
#endif

namespace {

using u64 = std::uint64_t;
using i64 = std::int64_t;

constexpr u64 GOLDEN = 0x9E3779B97F4A7C15ULL;
constexpr u64 MAX_USE = 1 << 16;
constexpr int TIMES = 0, CELLS = 1, ITEMS = 2, FLIPS = 0, NOISE = 16;
constexpr int SHORT = 48;  // lists up to this length are ranked by counting
constexpr int CROWDED = 24, BUCKETS = 3;

inline u64 mix(u64 word) {
    word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9ULL;
    word = (word ^ (word >> 27)) * 0x94D049BB133111EBULL;
    return word ^ (word >> 31);
}

inline u64 key_of(u64 seed, u64 stream) { return mix(mix(seed) + stream * GOLDEN); }

inline u64 start(u64 key, u64 round, u64 use) { return mix(key + (round * MAX_USE + use) * GOLDEN); }

inline u64 word(u64 begin, u64 index) { return mix(begin + (index + 1) * GOLDEN); }

inline double to_unit(u64 bits) {
    return (static_cast<double>(static_cast<i64>(bits >> 12)) + 0.5) * 0x1p-52;
}

// Turns counts into where each bucket starts; returns the largest count. Reads up to 15 beyond n.
inline std::int32_t starts(std::int32_t* __restrict counts, int n) {
#ifdef __AVX512DQ__
    const __m512i zero = _mm512_setzero_si512(), last = _mm512_set1_epi32(15);
    __m512i before = zero, most = zero;
    for (int b = 0; b < n; b += 16) {
        const __m512i here = _mm512_loadu_si512(counts + b);
        most = _mm512_max_epi32(most, here);
        __m512i sum = _mm512_add_epi32(here, _mm512_alignr_epi32(here, zero, 15));
        sum = _mm512_add_epi32(sum, _mm512_alignr_epi32(sum, zero, 14));
        sum = _mm512_add_epi32(sum, _mm512_alignr_epi32(sum, zero, 12));
        sum = _mm512_add_epi32(sum, _mm512_alignr_epi32(sum, zero, 8));
        sum = _mm512_add_epi32(sum, before);
        _mm512_storeu_si512(counts + b, _mm512_sub_epi32(sum, here));
        before = _mm512_permutexvar_epi32(last, sum);
    }
    return _mm512_reduce_max_epi32(most);
#else
    std::int32_t most = 0, begin = 0;
    for (int b = 0; b < n; b++) {
        const std::int32_t here = counts[b];
        most = std::max(most, here);
        counts[b] = begin;
        begin += here;
    }
    return most;
#endif
}

struct Sorter {
    int m, n_buckets;
    std::vector<std::int32_t> bucket, count;
    std::vector<double> sorted;

    explicit Sorter(int m) : m(m), n_buckets(BUCKETS * m), bucket(m), count(n_buckets + 17), sorted(m) {}

    void stably(const double* keys, std::int32_t* order) {
        std::iota(order, order + m, 0);
        std::stable_sort(order, order + m, [&](int a, int b) { return keys[a] > keys[b]; });
    }

    // Equal-width buckets, then insertion of the few that are out of place.
    void sort(const double* __restrict keys, double low, double high, std::int32_t* __restrict order) {
        std::int32_t* __restrict of = bucket.data();
        std::int32_t* __restrict counts = count.data();
        double* __restrict out = sorted.data();
        const double scale = high > low ? n_buckets / (high - low) : 0.0;
        if (!(scale > 0.0 && scale < 1e300)) return stably(keys, order);
        std::memset(counts, 0, sizeof(std::int32_t) * count.size());
        for (int i = 0; i < m; i++) of[i] = static_cast<std::int32_t>((high - keys[i]) * scale);
        for (int i = 0; i < m; i++) counts[of[i]]++;
        const std::int32_t most = starts(counts, n_buckets + 1);
        for (int i = 0; i < m; i++) {
            const std::int32_t place = counts[of[i]]++;
            order[place] = i;
            out[place] = keys[i];
        }
        if (most > CROWDED) return stably(keys, order);
        for (int p = 1; p < m; p++) {
            const double key = out[p];
            if (out[p - 1] < key) {
                const std::int32_t item = order[p];
                int free = p;
                for (; free > 0 && out[free - 1] < key; free--) {
                    out[free] = out[free - 1];
                    order[free] = order[free - 1];
                }
                out[free] = key;
                order[free] = item;
            }
        }
    }
};

struct Plan {
    i64 first = 0, end = 0;
    std::vector<i64> times;
    std::vector<std::int32_t> cells, items;
    std::vector<double> keys;
    int next = 0;

    explicit Plan(int m) : times(m + 1), cells(m), items(m), keys(m) {}

    void make(u64 key, i64 block, i64 n_blocks, i64 rounds, int m, Sorter& sorter) {
        // Blocks differ in length by at most one round, the longer ones first.
        const i64 length = rounds / n_blocks, n_long = rounds % n_blocks;
        first = block * length + std::min(block, n_long);
        end = first + length + (block < n_long ? 1 : 0);
        next = 0;
        const u64 at_times = start(key, first, TIMES), at_cells = start(key, first, CELLS);
        int chosen = 0;
        for (i64 t = 0; chosen < m; t++)
            if (to_unit(word(at_times, t)) * (end - first - t) < m - chosen) times[chosen++] = first + t;
        times[m] = -1;
        std::iota(cells.begin(), cells.end(), 0);
        for (int last = m - 1; last > 0; last--)
            std::swap(cells[last], cells[static_cast<int>(to_unit(word(at_cells, last)) * (last + 1))]);
        const u64 at_items = start(key, first, ITEMS);
        for (int i = 0; i < m; i++) keys[i] = to_unit(word(at_items, i));
        if (m <= SHORT) {
            sorter.stably(keys.data(), items.data());
        } else {
            const auto [low, high] = std::minmax_element(keys.begin(), keys.end());
            sorter.sort(keys.data(), *low, *high, items.data());
        }
    }
};

struct Game {
    int m;
    i64 rounds;
    u64 seed, run;
    i64 n_blocks;
    double rate, flip;
    const double *truth, *weights;
    const i64* checkpoints;
    double *scores, *best;
};

double best_of(const Game& g, std::vector<double>& sums, std::vector<std::int32_t>& order, Sorter& sorter) {
    sorter.stably(sums.data(), order.data());
    double total = 0.0;
    for (int p = 0; p < g.m; p++) total += g.weights[p] * sums[order[p]];
    return total;
}

inline void to_top(std::int32_t* order, int m, int item) {
    const int place = std::find(order, order + m, item) - order;
    std::memmove(order + 1, order, sizeof(std::int32_t) * place);
    order[0] = item;
}

inline double dcg(const double* __restrict weights, const double* __restrict gains,
                  const std::int32_t* __restrict order, int m) {
    double total = 0.0;
#pragma omp simd reduction(+ : total)
    for (int p = 0; p < m; p++) total += weights[p] * gains[order[p]];
    return total;
}

// V vectors of eight items hold a short list; the padding is smaller than every key.
template <int V>
inline void by_counting(const double* __restrict keys, int m, std::int32_t* __restrict order) {
#ifdef __AVX512DQ__
    __m512d mine[V];
    __m512i ranks[V];
    const __m512i one = _mm512_set1_epi64(1);
    for (int v = 0; v < V; v++) {
        mine[v] = _mm512_load_pd(keys + 8 * v);
        ranks[v] = _mm512_setzero_si512();
    }
    for (int j = 0; j < m; j++) {
        const __m512d other = _mm512_set1_pd(keys[j]);
        for (int v = 0; v < V; v++)
            ranks[v] = _mm512_mask_add_epi64(
                ranks[v], _mm512_cmp_pd_mask(mine[v], other, _CMP_LT_OQ), ranks[v], one);
    }
    alignas(64) i64 rank[8 * V];
    for (int v = 0; v < V; v++) _mm512_store_si512(rank + 8 * v, ranks[v]);
#else
    i64 rank[8 * V] = {};
    for (int j = 0; j < m; j++)
        for (int i = 0; i < 8 * V; i++) rank[i] += keys[i] < keys[j];
#endif
    i64 total = 0;
    for (int i = 0; i < m; i++) {
        order[rank[i]] = i;
        total += rank[i];
    }
    if (total != static_cast<i64>(m) * (m - 1) / 2) {  // ties
        std::iota(order, order + m, 0);
        std::stable_sort(order, order + m, [&](int a, int b) { return keys[a] > keys[b]; });
    }
}

// V > 0: a short list in V vectors; V = 0: a long one.
template <int V>
void play(const Game& g) {
    const int m = g.m, padded = V > 0 ? 8 * V : m;
    Sorter sorter(m);
    Plan plan(m);
    std::vector<std::int32_t> order_(padded), scratch(m);
    std::vector<double> sums(padded), scores(m), pending(m), truth_(padded);
    struct alignas(64) Line { double x[8]; };
    std::vector<Line> lines(3 * (padded / 8 + 1));
    double* __restrict gains = lines[0].x;
    double* __restrict keys = lines[padded / 8 + 1].x;
    double* __restrict base = lines[2 * (padded / 8 + 1)].x;
    std::copy(g.truth, g.truth + m, truth_.begin());
    std::fill(base, base + padded, -1e300);
    const double* __restrict truth = truth_.data();
    double* __restrict sum = sums.data();
    std::int32_t* order = order_.data();
    const u64 ranker = key_of(g.seed, 4 * g.run), world = key_of(g.seed, 4 * g.run + 1);
    double total = 0.0;
    int cursor = 0;
    i64 t = 0;
    for (i64 block = 0; block < g.n_blocks; block++) {
        plan.make(ranker, block, g.n_blocks, g.rounds, m, sorter);
        for (int i = 0; i < m; i++) {
            scores[i] += pending[i];
            pending[i] = 0.0;
            base[i] = g.rate * scores[i];
        }
        for (; t < plan.end; t++) {
            const u64 users = start(world, t, FLIPS), noise = start(ranker, t, NOISE);
            double low = 1e300, high = -1e300;
            const int n = V > 0 ? 8 * V : m;
            for (int i = 0; i < n; i++) {
                const double flipped = to_unit(word(users, i)) < g.flip ? 1.0 : 0.0;
                const double gain = truth[i] > flipped ? truth[i] - flipped : flipped - truth[i];
                gains[i] = gain;
                sum[i] += gain;
            }
#pragma omp simd reduction(min : low) reduction(max : high)
            for (int i = 0; i < n; i++) {
                const double key = base[i] + to_unit(word(noise, i));
                keys[i] = key;
                if (V == 0) {
                    low = key < low ? key : low;
                    high = key > high ? key : high;
                }
            }
            if constexpr (V > 0) {
                by_counting<V>(keys, m, order);
            } else {
                sorter.sort(keys, low, high, order);
            }
            if (t == plan.times[plan.next]) {
                const int item = plan.items[plan.cells[plan.next++]];
                to_top(order, m, item);
                pending[item] += gains[order[0]];
            }
            total += dcg(g.weights, gains, order, m);
            if (t + 1 == g.checkpoints[cursor]) {
                g.scores[cursor] = total;
                g.best[cursor++] = best_of(g, sums, scratch, sorter);
            }
        }
    }
}

}  // namespace

extern "C" void tight_play(int m, i64 rounds, u64 seed, u64 run, i64 n_blocks, double rate, double flip,
                           const double* truth, const double* weights, const i64* checkpoints,
                           double* scores, double* best) {
    const Game g{m, rounds, seed, run, n_blocks, rate, flip, truth, weights, checkpoints, scores, best};
    switch (m <= SHORT ? (m + 7) / 8 : 0) {
        case 1: return play<1>(g);
        case 2: return play<2>(g);
        case 3: return play<3>(g);
        case 4: return play<4>(g);
        case 5: return play<5>(g);
        case 6: return play<6>(g);
        default: return play<0>(g);
    }
}
