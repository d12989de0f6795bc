// Fills, compares and restores the elements of a case, and compares every other mapped byte with the canary.
// Every offset is 64 bits wide.

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;

#define AXES 8
#define NONE 0xffffffffffffffffULL

// One rectangle of elements, as worker/ground/cuda.rs writes it.
struct Region {
    u64 start;       // address of the element of the lowest index
    u64 count;       // elements
    u64 position;    // of its first element among those of all regions
    u64 before;      // offset of its values before the run, or NONE: the canary
    u64 after;       // offset of its values after the run, or NONE: as before
    u32 bytes;       // of an element
    u32 part;        // bytes of a float in it, whose two zeros are equal; 0: compared bit by bit
    u32 axes;        // in use, smallest stride first
    u32 flags;       // 1: restored after the run; 2: an input inside an operand that is written
    i64 extent[AXES];
    i64 stride[AXES];    // bytes
};

struct Pages {
    u64 start;
    u64 bytes;
};

// Counts, and lowest positions or addresses.
struct Found {
    u64 wrong;       // output elements
    u64 first;       // position * 2, plus 1 where it still holds what was there before the run
    u64 stray;       // bytes of inputs
    u64 stray_low;
    u64 shared;      // bytes of inputs that lie in an operand that is written
    u64 shared_low;
    u64 canary;      // other bytes
    u64 canary_low;
};

static __device__ u64 mix(u64 z)
{
    z += 0x9e3779b97f4a7c15ULL;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
}

// The canary of the 8 bytes at an address that 8 divides: bytes 0xff and 0x7f or 0xff in turn. NaN in every type of float,
// at every even address, those of 8 bits included.
static __device__ u64 canary_word(u64 address)
{
    u64 bits = mix(address >> 3);
    u64 word = 0x7fff7fff7fff7fffULL;
    word |= (bits & 1) << 15 | (bits & 2) << 30 | (bits & 4) << 45 | (bits & 8) << 60;
    return word;
}

static __device__ u8 canary_byte(u64 address)
{
    return (u8)(canary_word(address & ~7ULL) >> (8 * (address & 7)));
}

static __device__ u64 element(const Region &r, u64 index)
{
    u64 address = r.start;
    for (u32 axis = 0; axis < r.axes; axis++) {
        u64 extent = (u64)r.extent[axis];
        u64 quotient = axis + 1 < r.axes ? index / extent : 0;
        address += (u64)r.stride[axis] * (index - quotient * extent);
        index = quotient;
    }
    return address;
}

static __device__ void copy(u8 *to, const u8 *from, u32 bytes)
{
    switch (bytes) {
    case 1: *to = *from; break;
    case 2: *(u16 *)to = *(const u16 *)from; break;
    case 4: *(u32 *)to = *(const u32 *)from; break;
    case 8: *(u64 *)to = *(const u64 *)from; break;
    default:
        for (u32 i = 0; i < bytes; i++) to[i] = from[i];
    }
}

static __device__ bool same(const u8 *a, const u8 *b, u32 bytes)
{
    switch (bytes) {
    case 1: return *a == *b;
    case 2: return *(const u16 *)a == *(const u16 *)b;
    case 4: return *(const u32 *)a == *(const u32 *)b;
    case 8: return *(const u64 *)a == *(const u64 *)b;
    default:
        for (u32 i = 0; i < bytes; i++)
            if (a[i] != b[i]) return false;
        return true;
    }
}

// All bits but the sign, little-endian.
static __device__ bool is_zero(const u8 *a, u32 bytes)
{
    for (u32 i = 0; i + 1 < bytes; i++)
        if (a[i]) return false;
    return (a[bytes - 1] & 0x7f) == 0;
}

// Equal as numbers: part by part, the two zeros of a float are equal.
static __device__ bool equal(const u8 *a, const u8 *b, u32 bytes, u32 part)
{
    if (same(a, b, bytes)) return true;
    if (part == 0) return false;
    for (u32 at = 0; at < bytes; at += part)
        if (!same(a + at, b + at, part) && !(is_zero(a + at, part) && is_zero(b + at, part))) return false;
    return true;
}

static __device__ bool is_canary(const u8 *a, u32 bytes)
{
    for (u32 i = 0; i < bytes; i++)
        if (a[i] != canary_byte((u64)a + i)) return false;
    return true;
}

// blockIdx.y is the region.
extern "C" __global__ void fill(const Region *regions, const u8 *staged)
{
    const Region r = regions[blockIdx.y];
    if (r.before == NONE) return;
    u64 step = (u64)gridDim.x * blockDim.x;
    for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < r.count; i += step)
        copy((u8 *)element(r, i), staged + r.before + i * r.bytes, r.bytes);
}

extern "C" __global__ void compare(const Region *regions, const u8 *staged, Found *found, u32 lenient)
{
    const Region r = regions[blockIdx.y];
    u64 step = (u64)gridDim.x * blockDim.x;
    for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < r.count; i += step) {
        const u8 *now = (const u8 *)element(r, i);
        const u8 *before = staged + r.before + i * r.bytes;
        if (r.after != NONE) {
            if (equal(now, staged + r.after + i * r.bytes, r.bytes, r.part)) continue;
            bool untouched = r.before == NONE ? is_canary(now, r.bytes) : same(now, before, r.bytes);
            if (untouched && lenient) continue;
            atomicAdd(&found->wrong, 1ULL);
            atomicMin(&found->first, (r.position + i) << 1 | (untouched ? 1 : 0));
        } else if (r.before != NONE && !same(now, before, r.bytes)) {
            for (u32 b = 0; b < r.bytes; b++) {
                if (now[b] == before[b]) continue;
                atomicAdd(r.flags & 2 ? &found->shared : &found->stray, 1ULL);
                atomicMin(r.flags & 2 ? &found->shared_low : &found->stray_low, (u64)now + b);
            }
        }
    }
}

extern "C" __global__ void restore(const Region *regions)
{
    const Region r = regions[blockIdx.y];
    if (!(r.flags & 1)) return;
    u64 step = (u64)gridDim.x * blockDim.x;
    for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < r.count; i += step) {
        u64 address = element(r, i);
        for (u32 b = 0; b < r.bytes; b++) ((u8 *)address)[b] = canary_byte(address + b);
    }
}

// blockIdx.y is the range; whole pages.
extern "C" __global__ void cover(const Pages *pages)
{
    const Pages range = pages[blockIdx.y];
    u64 step = (u64)gridDim.x * blockDim.x * 16;
    for (u64 at = ((u64)blockIdx.x * blockDim.x + threadIdx.x) * 16; at < range.bytes; at += step) {
        u64 address = range.start + at;
        *(ulonglong2 *)address = make_ulonglong2(canary_word(address), canary_word(address + 8));
    }
}

// Compares with the canary, and repairs what differs.
extern "C" __global__ void check_canary(const Pages *pages, Found *found)
{
    const Pages range = pages[blockIdx.y];
    u64 step = (u64)gridDim.x * blockDim.x * 16;
    for (u64 at = ((u64)blockIdx.x * blockDim.x + threadIdx.x) * 16; at < range.bytes; at += step) {
        u64 address = range.start + at;
        ulonglong2 now = *(ulonglong2 *)address;
        ulonglong2 want = make_ulonglong2(canary_word(address), canary_word(address + 8));
        if (now.x == want.x && now.y == want.y) continue;
        for (u32 b = 0; b < 16; b++) {
            u8 is = *(const u8 *)(address + b);
            if (is == canary_byte(address + b)) continue;
            atomicAdd(&found->canary, 1ULL);
            atomicMin(&found->canary_low, address + b);
        }
        *(ulonglong2 *)address = want;
    }
}
