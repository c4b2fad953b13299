// Turns every edge between two devices into a pair of nodes: what sends a value, and what receives it.
#pragma once

#include <string>

#include <kolo/core/device/device_set.h>
#include <kolo/core/passes/step_graph.h>

namespace kolo {

/// Names its input for the device of attribute "recv_device"; no copy.
inline constexpr char kSendOp[] = "_Send";
/// Copies what was sent into memory of its own device.
inline constexpr char kRecvOp[] = "_Recv";
/// Receives where sender and receiver see the same memory: no copy.
inline constexpr char kHostRecvOp[] = "_HostRecv";

/// Whether the device of that full name is a CPU.
inline bool is_cpu(const std::string& device) { return device.find("/device:CPU:") != std::string::npos; }
/// The name of the host's CPU; of a step's first node where a session has none.
std::string host_of(const StepGraph& graph, const DeviceSet& devices);
/// Whether the value lies in the host's memory: that of CPUs, what ops of a GPU keep there, and what a pass
/// has placed.
bool lies_on_host(const StepGraph& graph, StepValue value);

/// A value is sent once to each device, however many nodes there read it; one whose memory is a variable,
/// once between two updates. What a node of a GPU reads in host memory (OpSchema::host_input) comes to the
/// host; a copy into memory that a pass has placed receives the value there itself. Pairs are keyed by the
/// attributes tensor_name, send_device and recv_device. Fetched values are brought to `host`, a CPU. Control
/// edges stay: they carry nothing. To be called before updates are ordered: what reads a variable for another
/// device is the transfer. One device of the host: changes nothing. Throws InternalError where an op would
/// update a variable of another device.
void insert_transfers(StepGraph& graph, const std::string& host);

}  // namespace kolo
