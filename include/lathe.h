// SPDX-License-Identifier: Apache-2.0
// Lathe's own additions to the interface of the other headers. They add functions only; no type is changed.
//
// Functions report failure with nullptr or false; lastError() then says what went wrong. All are thread-safe, except
// that the object passed in obeys its own rules. Reports are JSON text, NUL-terminated, in an IHostMemory that the
// caller deletes (size() leaves the NUL out).
#ifndef LATHE_H
#define LATHE_H

#include "NvInfer.h"

namespace lathe {

// "0.3.0": Lathe's own version; getInferLibVersion() is that of the interface.
extern "C" TENSORRTAPI const char* latheVersion() noexcept;

// The last failure on the calling thread, as "LATHE-2101 shape_mismatch: ..."; "" when there was none. Valid until the
// thread's next call that fails.
TENSORRTAPI const char* lastError() noexcept;

// Element types that nvinfer1::DataType lacks. They occur as network inputs, outputs and values of ONNX models.
inline constexpr nvinfer1::DataType kDOUBLE = static_cast<nvinfer1::DataType>(64);
inline constexpr nvinfer1::DataType kINT16 = static_cast<nvinfer1::DataType>(65);
inline constexpr nvinfer1::DataType kUINT16 = static_cast<nvinfer1::DataType>(66);
inline constexpr nvinfer1::DataType kUINT32 = static_cast<nvinfer1::DataType>(67);
inline constexpr nvinfer1::DataType kUINT64 = static_cast<nvinfer1::DataType>(68);
// Types that tensors are stored in, as kFP8 (E4M3FN), kFP4, kINT4 and kE8M0 are: they can be cast, quantized,
// dequantized and moved, nothing else. Those of less than a byte are packed, the first element in the low bits.
inline constexpr nvinfer1::DataType kFP8_E4M3FNUZ = static_cast<nvinfer1::DataType>(69);
inline constexpr nvinfer1::DataType kFP8_E5M2 = static_cast<nvinfer1::DataType>(70);
inline constexpr nvinfer1::DataType kFP8_E5M2FNUZ = static_cast<nvinfer1::DataType>(71);
inline constexpr nvinfer1::DataType kUINT4 = static_cast<nvinfer1::DataType>(72);
inline constexpr nvinfer1::DataType kINT2 = static_cast<nvinfer1::DataType>(73);
inline constexpr nvinfer1::DataType kUINT2 = static_cast<nvinfer1::DataType>(74);

// ---- How to build --------------------------------------------------------------------------------------------------

// Wall-clock limit, in seconds, for the search for fast implementations. Every budget yields an engine. Negative: the
// optimization level decides (default).
TENSORRTAPI bool setBuildBudget(nvinfer1::IBuilderConfig& config, double seconds) noexcept;
TENSORRTAPI double getBuildBudget(const nvinfer1::IBuilderConfig& config) noexcept;

// Bytes of the host's memory that a build may take for weights; 0, the default: no limit. It holds them about twice, as
// the network has them and as the plan does, and candidates that are measured have packed some besides: with a limit,
// as many at one time as it leaves room for. A build whose weights alone need more fails before it takes them
// (out_of_memory), and says how much they need. The pools of setMemoryPoolLimit() are the device's. False if negative.
TENSORRTAPI bool setHostMemoryBudget(nvinfer1::IBuilderConfig& config, int64_t bytes) noexcept;
TENSORRTAPI int64_t getHostMemoryBudget(const nvinfer1::IBuilderConfig& config) noexcept;

// What to build for. The default is what the environment variable LATHE_TARGET names; else "cuda" where the CUDA driver
// is installed and finds a GPU; else "cpu". Each build tells in its log what it is for, and why. "cpu" (this machine's
// best); "cpu-x86_64-avx2", "cpu-x86_64-avx512", "cpu-x86_64-vnni" (AVX-512 with products of 8-bit integers),
// "cpu-x86_64-bf16" (and with those of bfloat16), "cpu-x86_64-amx" (and with matrix registers), and "cpu-x86_64" or
// "cpu-arm64" (any of that architecture); "cuda" (the current GPU, or the first), "cuda:1" (that one), "cuda-sm_90" or
// "sm_90" (GPUs of that architecture), "sm_80+" (GPUs of compute capability 8.0 and later); "null" (a device that
// computes nothing, for tests of what the host does).
// Where no such device is there, the cost model chooses kernels by a table of devices; setCpuThreads() then says for
// how many threads of another CPU. False when unknown.
TENSORRTAPI bool setTarget(nvinfer1::IBuilderConfig& config, const char* target) noexcept;
TENSORRTAPI const char* getTarget(const nvinfer1::IBuilderConfig& config) noexcept;
// The same network for several targets in one plan: names as above, separated by commas, up to 16, in the order of
// preference. "sm_80+" is PTX that all GPUs of compute capability 8.0 and later run, compiled when it is loaded. Each
// gets a variant, built as if it were the only one; weights of several variants are there once.
// A runtime loads the first variant that this machine runs. buildReportJson() is about the last one. setTarget() names
// a single one again; getTarget() gives the first. False where a name is unknown or there twice.
TENSORRTAPI bool setTargets(nvinfer1::IBuilderConfig& config, const char* targets) noexcept;
// Weights that variants have in different orders, for each kernel has its own, are in the plan in one of them, and the
// others are derived of it whenever such a variant is loaded (kDERIVED, the default); or they are there in each
// (kSTORED), so that loading only copies.
enum class VariantWeights : int32_t { kDERIVED = 0, kSTORED = 1 };
TENSORRTAPI bool setVariantWeights(nvinfer1::IBuilderConfig& config, VariantWeights weights) noexcept;

// What computation in float32 may be narrowed to, where that pays: kHALF, kBF16, or kFLOAT, the default: nothing. Sums
// stay in float32. The network's inputs and outputs keep their types. False for other types.
TENSORRTAPI bool setPrecision(nvinfer1::IBuilderConfig& config, nvinfer1::DataType type) noexcept;

// Expect a quantised network. Explicit quantisation, by quantize and dequantize layers, is always honoured; where the
// target multiplies 8-bit integers, what they enclose runs on them. With this on, a build that finds nothing quantised
// says so in a warning.
TENSORRTAPI bool setInt8(nvinfer1::IBuilderConfig& config, bool expected) noexcept;

// Overwrites weights of products and convolutions, so that of every four neighbours along what is summed over
// (channels, of convolutions) the two largest are left, and zeros in place of the others. Results are others, for
// nothing trains the network anew: it serves to see what BuilderFlag::kSPARSE_WEIGHTS would gain. Builds with flags of
// refitting fail.
TENSORRTAPI bool setForcedSparsity(nvinfer1::IBuilderConfig& config, bool forced) noexcept;

// Scales of a float network's tensors, as a calibrator of TensorRT wrote them: with setInt8(), and where the target
// multiplies 8-bit integers, convolutions and matrix products of these tensors run on them. The text is copied; null or
// a size of 0 takes it away. False where it is no calibration cache.
TENSORRTAPI bool setCalibrationCache(nvinfer1::IBuilderConfig& config, const char* text, size_t size) noexcept;

// Types for single layers, which setPrecision() does not touch. `layer` is a layer's name, or a pattern of names with
// one '*'; later calls override earlier ones. They count as the constraints say: kNONE, the default, ignores them; with
// kPREFER a layer that cannot be as asked gets a warning; with kOBEY the build fails, and says which layer and why.
// False for types that no layer can have.
enum class PrecisionConstraints : int32_t { kNONE = 0, kPREFER = 1, kOBEY = 2 };
TENSORRTAPI bool setPrecisionConstraints(nvinfer1::IBuilderConfig& config, PrecisionConstraints constraints) noexcept;
// In which the layer computes: kFLOAT, kHALF, kBF16, or kINT8 where its operands are quantised.
TENSORRTAPI bool setLayerPrecision(nvinfer1::IBuilderConfig& config, const char* layer,
                                   nvinfer1::DataType type) noexcept;
// To which an output is rounded: kFLOAT, kHALF or kBF16. The types that the network declares stay as they are.
TENSORRTAPI bool setLayerOutputType(nvinfer1::IBuilderConfig& config, const char* layer, int32_t output,
                                    nvinfer1::DataType type) noexcept;

// For looking into a build. Before kernels are chosen, passes rewrite the network, as often as one of them finds
// something to do. The network is written as text into files of `directory`, which is made where it is missing:
// 000_before.graph, then one file per pass that changed it, 001_fold_constants.graph and so on. What a pass was given
// that failed is in NNN_<pass>_failed.graph, and the error says so. Each change is verified, which takes longer. Files
// of such names that an earlier build left there are removed. nullptr or "": nowhere (default). A folder that cannot be
// written fails the build.
TENSORRTAPI bool setPassDump(nvinfer1::IBuilderConfig& config, const char* directory) noexcept;
// Whether the build leaves that pass out: to find one that is to blame, never for good, as engines become slower and
// some networks cannot be built. buildReportJson() has the names, in order. False when there is no such pass;
// lastError() lists them.
TENSORRTAPI bool setPassSkipped(nvinfer1::IBuilderConfig& config, const char* pass, bool skipped) noexcept;

// Tactic sources that nvinfer1::TacticSource lacks, for IBuilderConfig::setTacticSources: kernels of NVIDIA's cuBLASLt
// and cuDNN compete with our own. Off unless asked for: an engine that uses one needs the library wherever it is
// loaded, and ICudaEngine::getTacticSources() tells which. The libraries are opened at run time; LATHE_CUBLASLT and
// LATHE_CUDNN in the environment give their paths. One that is missing while building is not used.
#if NV_TENSORRT_MAJOR >= 11
inline constexpr nvinfer1::TacticSource kCUBLAS_LT = static_cast<nvinfer1::TacticSource>(16);
inline constexpr nvinfer1::TacticSource kCUDNN = static_cast<nvinfer1::TacticSource>(17);
#else
inline constexpr nvinfer1::TacticSource kCUBLAS_LT = static_cast<nvinfer1::TacticSource>(1);
inline constexpr nvinfer1::TacticSource kCUDNN = static_cast<nvinfer1::TacticSource>(2);
#endif

// Device code is compiled in processes of its own, so that a compiler that crashes or hangs costs one candidate for one
// step, and a warning. They run the program `lathe-compiler`. `program` is its path, which is copied; nullptr (default)
// takes the path from the environment variable LATHE_COMPILER, or else finds the program in the library's folder or in
// ../bin or ../libexec/lathe from there. "", here or in the variable, compiles in this process, one kernel at a time;
// so does a build that cannot start processes, with one warning. False when out of memory.
TENSORRTAPI bool setCompiler(nvinfer1::IBuilderConfig& config, const char* program) noexcept;
// Limits of compiling one kernel: seconds of processor time, and likewise of wall time without any progress (default
// 60), and MiB of memory of the process that compiles it (default 4096). Compiling in this process has no limits.
// False, and nothing is changed, where either is not positive or the memory exceeds 2^40 MiB.
TENSORRTAPI bool setCompilerLimits(nvinfer1::IBuilderConfig& config, double seconds, int64_t mebibytes) noexcept;

// Threads that CPU engines are tuned for. 0: all cores this process may use (default). False when negative.
TENSORRTAPI bool setCpuThreads(nvinfer1::IBuilderConfig& config, int32_t threads) noexcept;

// Threads that CPU engines made by this runtime run on, or a context made with this configuration; 0 and false as
// above. Plans are checked by so many, unless IRuntime::setMaxThreads() says.
TENSORRTAPI bool setCpuThreads(nvinfer1::IRuntime& runtime, int32_t threads) noexcept;
TENSORRTAPI bool setCpuThreads(nvinfer1::IRuntimeConfig& config, int32_t threads) noexcept;

// Lets go of the GPUs that nothing uses any more. A GPU that was built for or that ran an engine is otherwise kept open
// until the process ends, since opening it again takes some tenths of a second; meanwhile its context holds some
// hundred MiB of its memory. No error is possible.
TENSORRTAPI void releaseIdleDevices() noexcept;

// Random numbers. An operator with a seed gives the same numbers in every run, on every device. One without gives
// others in each run. With a seed of the process it does so, too, but the n-th run of a context since the seed was set
// gives the same in each context, whatever the others do; different operators give different ones. `seeded` false (as
// the process begins) takes the seed away.
TENSORRTAPI void setRandomSeed(uint64_t seed, bool seeded = true) noexcept;

// Whether the context that a plugin is attached to runs on the host: enqueue() is then given pointers of the host's and
// a null stream, is called from the thread that runs the context, and its work must be done when it returns. To be
// asked in attachToContext(); false for contexts that are not Lathe's.
TENSORRTAPI bool runsOnHost(const nvinfer1::IPluginResourceContext& context) noexcept;

// One plan of several for different targets, built on different machines perhaps, each for its own device: as
// setTargets() makes it, in this order. The plans must be of one version and have the same inputs, outputs and number
// of profiles; that they are of the same network is up to the caller. Those that hold variants are taken apart;
// signatures are left out. The caller deletes the result; nullptr on failure.
TENSORRTAPI nvinfer1::IHostMemory* mergePlans(const void* const* plans, const std::size_t* sizes,
                                              int32_t nbPlans) noexcept;
// As setVariantWeights() says; above, derived.
TENSORRTAPI nvinfer1::IHostMemory* mergePlans(const void* const* plans, const std::size_t* sizes, int32_t nbPlans,
                                              VariantWeights weights) noexcept;

// ---- Trust: docs/trust.md -----------------------------------------------------------------------------------------

// Whose plans the runtime loads, in whatever way. `keys` are public keys, separated by commas: each "ed25519:" and 64
// hexadecimal digits, or the path of a file that holds just that, as makeKeyFiles() writes it. From now on a plan must
// be signed by one of them and be as it was when it was signed; any other is refused with LATHE-4005 or LATHE-4004
// before more than its header is read. nullptr takes the list away. Where LATHE_TRUSTED_KEYS was in the environment
// when the runtime was made, a list of the same form, plans must satisfy that one as well. What loadRuntime() loads
// from now on has the list, too; engines that are loaded already stay. False, and nothing changes, where the list names
// no key or cannot be read, or the runtime is of another library. Threads may load plans meanwhile.
TENSORRTAPI bool setTrustedKeys(nvinfer1::IRuntime& runtime, const char* keys) noexcept;

// A new pair of keys (Ed25519) in two new files: the secret one, which signs and which its owner alone can read, and
// the public one, by which others tell who has signed. False, and no file is made, where one is there already.
TENSORRTAPI bool makeKeyFiles(const char* secretKeyFile, const char* publicKeyFile) noexcept;

// The plan with a signature, in place of one that it may have had. The plan is checked first: a damaged one is not
// signed. A foreign prefix is left out. The caller deletes the result; nullptr on failure.
TENSORRTAPI nvinfer1::IHostMemory* signPlan(const void* plan, std::size_t size, const char* secretKeyFile) noexcept;

// Whether a runtime with these trusted keys would take the plan: one of them has signed it, and no byte has changed.
// lastError() says why not. The plan is not loaded; its version and target are not looked at.
TENSORRTAPI bool verifyPlan(const void* plan, std::size_t size, const char* keys) noexcept;

// ---- Engines -------------------------------------------------------------------------------------------------------

// Like IRuntime::deserializeCudaEngine for a plan file, which is mapped rather than read: loading takes milliseconds
// and processes share the weights' memory. Load no plan that you do not trust: docs/trust.md. The file must not be
// changed while the engine lives; it may be unlinked. Null and one error report when the file cannot be read or is
// refused. The caller owns the engine.
TENSORRTAPI nvinfer1::ICudaEngine* loadEngineFile(nvinfer1::IRuntime& runtime, const char* path) noexcept;

// Writes `size` bytes, a plan or a timing cache, say, to a file. Whoever reads it meanwhile, or after this has failed,
// sees the old content, never a part of the new: the bytes are written under another name in the file's folder and then
// renamed. Returns whether it has; lastError() says why not (LATHE-1002 with the system's reason). Thread-safe.
TENSORRTAPI bool saveFile(const void* data, std::size_t size, const char* path) noexcept;

// Like IBuilder::buildSerializedNetwork, into a file, which is replaced as saveFile() replaces one. The plan is written
// as it is made and never in memory as a whole, unless it is for several targets. False and one error report when the
// engine cannot be built or written; the file is then as it was.
TENSORRTAPI bool buildEngineFile(nvinfer1::IBuilder& builder, nvinfer1::INetworkDefinition& network,
                                 nvinfer1::IBuilderConfig& config, const char* path) noexcept;

// Engines that this runtime loads from now on are only looked at: no device is opened, so that engines for other
// machines and GPUs can be inspected and serialized here. createExecutionContext() of such an engine fails with one
// error report.
TENSORRTAPI void setInspectionOnly(nvinfer1::IRuntime& runtime, bool only) noexcept;

// ---- Runtime caches: docs/runtime_cache.md ------------------------------------------------------------------------

// Engines that this runtime loads from now on look for kernels that must be compiled for the device in a file of
// IRuntimeCache, and add theirs: it is read when the engine is loaded, which then has all its kernels, and written
// before each context is created and when the engine is deleted, if there is something new. What cannot be read or
// written is a warning, never a failure. `mostBytes` bounds the file's kernels: those not used for longest go; 0 is 256
// MiB. Processes may share the file. nullptr or "": no file (default). False where `mostBytes` is negative, the path is
// too long, or the runtime is of another library.
TENSORRTAPI bool setRuntimeCacheFile(nvinfer1::IRuntime& runtime, const char* path, int64_t mostBytes = 0) noexcept;

// Adds the kernels of a file, as IRuntimeCache::deserialize() does. False, with a warning in the log, where it is
// missing, damaged, of another machine or version, or another process has it locked for longer than 10 seconds;
// lastError() says which.
TENSORRTAPI bool loadRuntimeCache(nvinfer1::IRuntimeCache& cache, const char* path) noexcept;
// Writes the cache into a file, together with the kernels that are there already. Readers see the old file or the new
// one. An empty cache writes nothing. False, with a warning in the log, where that fails; the file is as it was.
TENSORRTAPI bool saveRuntimeCache(const nvinfer1::IRuntimeCache& cache, const char* path) noexcept;
// The most bytes of kernels that a cache holds, and with it the files that it is saved in: those not used for longest
// go. 256 MiB by default. False when negative, or the cache is of another library.
TENSORRTAPI bool setRuntimeCacheLimit(nvinfer1::IRuntimeCache& cache, int64_t mostBytes) noexcept;
// {"environment", "kernels", "bytes", "most_bytes", "hits", "compiled", "evicted"}: what it is for, what it holds now,
// and what has happened since it was made. Null where the cache is of another library.
TENSORRTAPI nvinfer1::IHostMemory* runtimeCacheJson(const nvinfer1::IRuntimeCache& cache) noexcept;

// ---- Reports -------------------------------------------------------------------------------------------------------

// The builder's last build: {"seconds", "seconds_passes", "seconds_tuning", "target", "threads", "measured",
// "from_cache", "weights_bytes", "arena_bytes", "evaluated_share", "passes": [{"name", "milliseconds", "changed"}],
// "layers": [{"name", "kind", "origin", "tactic", "milliseconds", "predicted_milliseconds", "operations", "bytes",
// "candidates": [{"tactic", "milliseconds", "predicted_milliseconds"}], "refusals"}], "tensors": [{"name", "type",
// "layout", "why"}], "memory"}. `measured` and `from_cache` count problems; `evaluated_share` is about what part of the
// time, from 0 to 1, goes to plain evaluations. A layer's candidates begin with its tactic; the others are those that
// it was chosen from, "milliseconds" null where none was measured. `arena_bytes` is the most that results between
// layers take at once, null when a profile sets no limit. `tensors` are those of the network as passes have left it;
// "layout" is "linear", "channels-last", "strided", or empty for what is never in memory, and "why" is text for people.
// `memory` lists what each phase of the build took. Null before the first build.
TENSORRTAPI nvinfer1::IHostMemory* buildReportJson(const nvinfer1::IBuilder& builder) noexcept;

// The network as the builder sees it, in the text form that Lathe's messages use. Not JSON.
TENSORRTAPI nvinfer1::IHostMemory* networkText(const nvinfer1::INetworkDefinition& network) noexcept;

// What a plan holds, without loading it: {"format", "version", "target", "tuned_on", "bytes", "sections", "bindings",
// "profiles", "steps", "tensors", "constants", "buffers", "code", "metadata", "variants", "signed_by"}. "inputs" and
// "outputs" of a step are numbers of tensors; "storage" and "index" of a tensor say where it lies: in a buffer of the
// arena, in a constant, at a binding, or in memory whose size is found while running. Buffers have "offset" and "bytes"
// and are in use from step "first" to step "last"; offsets and dims are those of the first profile's optimum. Where the
// plan was built with ProfilingVerbosity::kDETAILED, "lathe.costs" in its metadata is JSON: {"device": rates of the
// target, "steps": [[predicted milliseconds, operations, bytes]...]}. Of a plan of several variants ({"target",
// "bytes", "hardware_compatibility"} each), bindings, steps and code are those of the first. "signed_by" is the key
// that a signature names, unverified, or null. Steps of a block follow it, one "depth" further in.
TENSORRTAPI nvinfer1::IHostMemory* planJson(const void* plan, std::size_t size) noexcept;

// Which parts of an ONNX model are supported: {"supported", "nodes", "operators": [{"op", "domain", "count",
// "supported"}], "problems": [...], "list": [{"node", "name", "op", "domain", "support", "message"}]}: `list` has every
// node, native, generic, unsupported or blocked by another, `problems` those that cannot be built. Also for models that
// cannot be imported.
TENSORRTAPI nvinfer1::IHostMemory* supportJson(const char* onnxPath) noexcept;

// This machine: {"version", "os", "memory_bytes", "devices": [{"name", "product", "target", ...}], "targets", "checks":
// [{"name", "ok", "detail", "remedy"}]}. What else is told of a device depends on its kind: "isa" and "threads" of the
// CPU, "compute_capability", "multiprocessors" and "memory_bytes" of a GPU. A machine without a GPU has checks that
// fail, and only building and running for a GPU needs them.
TENSORRTAPI nvinfer1::IHostMemory* doctorJson() noexcept;

// ---- Plain evaluation ----------------------------------------------------------------------------------------------

// A named tensor in host memory, row-major. `data` is not owned.
struct NamedTensor {
  const char* name;
  nvinfer1::DataType type;
  nvinfer1::Dims dims;
  const void* data;
};

// Tensors that the library made. The caller deletes it.
class ITensorList {
 public:
  virtual ~ITensorList() noexcept = default;
  virtual int32_t size() const noexcept = 0;
  virtual const NamedTensor* get(int32_t index) const noexcept = 0;  // nullptr when out of range
};

// Evaluates an ONNX model op by op, with no optimization: slow, obvious, and what built engines are compared with.
// Gives all outputs of the model; with `allValues`, also every named value inside. An input that is a sequence `x` is
// given as `x_0`, `x_1` and so on; one that is an optional need not be given.
TENSORRTAPI ITensorList* evaluate(const char* onnxPath, const NamedTensor* inputs, int32_t nbInputs,
                                  bool allValues = false) noexcept;

// The same in kDOUBLE wherever the model has kFLOAT, kHALF or kBF16, of results too: what rounding in those types is
// measured by. Storage types round as the model says; an operator without a form for kDOUBLE computes in kFLOAT.
TENSORRTAPI ITensorList* evaluateInDoubles(const char* onnxPath, const NamedTensor* inputs, int32_t nbInputs,
                                           bool allValues = false) noexcept;

// What tells two tensors apart: {"name", "passed", "elements", "max_abs", "max_rel", "rms", "cosine", "mismatches"}.
// "max_rel" is the greatest difference of an element relative to what is wanted of it, "rms" the root of the mean
// square difference, "cosine" that of the angle between the tensors as vectors (1 of two zeros); null is not finite.
// Both may be floats of any type. Where dims or types differ there are "name", "passed", "elements" and "message".
// Options as of compareJson().
TENSORRTAPI nvinfer1::IHostMemory* compareTensorsJson(const NamedTensor& have, const NamedTensor& want,
                                                      const char* optionsJson) noexcept;

// Runs an engine of the model, and compares with evaluate(), or with evaluateInDoubles(). `optionsJson` may be nullptr,
// or hold {"rtol": 1e-3, "atol": 1e-5, "doubles": false}. Gives {"passed", "tensors": [...], "outputs": [...]} of what
// compareTensorsJson() tells: "tensors" are the values inside that the engine still computes, in its order, floats
// whatever they were narrowed to; "passed" speaks of the outputs alone.
TENSORRTAPI nvinfer1::IHostMemory* compareJson(nvinfer1::ICudaEngine& engine, const char* onnxPath,
                                               const NamedTensor* inputs, int32_t nbInputs,
                                               const char* optionsJson) noexcept;

// The same with tensors that another program has computed of these inputs, outputs or values inside, by their names in
// the model; "doubles" is no option here. Those that the engine does not compute by themselves are in no report.
TENSORRTAPI nvinfer1::IHostMemory* compareWithTensorsJson(nvinfer1::ICudaEngine& engine, const NamedTensor* inputs,
                                                          int32_t nbInputs, const NamedTensor* wanted, int32_t nbWanted,
                                                          const char* optionsJson) noexcept;

}  // namespace lathe

#endif  // LATHE_H
