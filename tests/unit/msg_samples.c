/* SPDX-License-Identifier: MIT */
/*
 * The golden bytes come from protobuf's own encoder (protoc --encode), not from the code under
 * test. All values differ, so that two fields cannot be exchanged unnoticed.
 */
#include "msg_samples.h"

static const uint8_t unique_id[] = {0x0b, 0x30, 0x55, 0x7a, 0x9f, 0xc4, 0xe9, 0x0e, 0x33, 0x58,
	0x7d, 0xa2, 0xc7, 0xec, 0x11, 0x36, 0x5b, 0x80, 0xa5, 0xca, 0xef, 0x14, 0x39, 0x5e, 0x83,
	0xa8, 0xcd, 0xf2, 0x17, 0x3c, 0x61, 0x86, 0xab, 0xd0, 0xf5, 0x1a, 0x3f, 0x64, 0x89, 0xae,
	0xd3, 0xf8, 0x1d, 0x42, 0x67, 0x8c, 0xb1, 0xd6, 0xfb, 0x20, 0x45, 0x6a, 0x8f, 0xb4, 0xd9,
	0xfe, 0x23, 0x48, 0x6d, 0x92, 0xb7, 0xdc, 0x01, 0x26, 0x4b, 0x70, 0x95, 0xba, 0xdf, 0x04,
	0x29, 0x4e, 0x73, 0x98, 0xbd, 0xe2, 0x07, 0x2c, 0x51, 0x76, 0x9b, 0xc0, 0xe5, 0x0a, 0x2f,
	0x54, 0x79, 0x9e, 0xc3, 0xe8, 0x0d, 0x32, 0x57, 0x7c, 0xa1, 0xc6, 0xeb, 0x10, 0x35, 0x5a,
	0x7f, 0xa4, 0xc9, 0xee, 0x13, 0x38, 0x5d, 0x82, 0xa7, 0xcc, 0xf1, 0x16, 0x3b, 0x60, 0x85,
	0xaa, 0xcf, 0xf4, 0x19, 0x3e, 0x63, 0x88, 0xad, 0xd2, 0xf7, 0x1c, 0x41, 0x66};

static const uint8_t instance[] = {0xa0, 0xa1, 0xa2, 0xa3, 0xa4, 0xa5, 0xa6, 0xa7, 0xa8, 0xa9, 0xaa,
	0xab, 0xac, 0xad, 0xae, 0xaf};

static struct rx_limit_info limits[] = {
	{
		.name = "sessions",
		.used = 1,
		.limit = 1024,
	},
	{
		.name = "bytes",
		.used = 0x200000000,
		.limit = 0x1000000000,
	},
};

static struct rx_session_info sessions[] = {
	{
		.id = 0x100000001,
		.pid = 201,
		.uid = 202,
		.gid = 203,
		.program = "worker",
		.connected_ns = 204,
		.n_members = 205,
		.n_regions = 206,
		.region_bytes = 207,
		.ring_bytes = 208,
		.ops_in_flight = 209,
		.ops_done = 210,
	},
	{
		.id = 0x200000002,
		.pid = 301,
		.uid = 302,
		.gid = 303,
		.program = "other",
		.connected_ns = 304,
		.n_members = 305,
		.n_regions = 306,
		.region_bytes = 307,
		.ring_bytes = 308,
		.ops_in_flight = 309,
		.ops_done = 310,
	},
};

static struct rx_rank_info members[] = {
	{
		.rank = 0,
		.session_id = 404,
		.pid = 405,
		.uid = 406,
		.status = "alive",
		.op_seq = 407,
		.op = "all_reduce of 8 float32, sum",
		.queued_seq = 408,
		.late = true,
	},
	{
		.rank = 1,
		.session_id = 504,
		.pid = 505,
		.uid = 506,
		.status = "dead",
		.op_seq = 507,
		.op = "barrier",
		.queued_seq = 508,
		.late = true,
	},
};

static struct rx_comm_info comms[] = {
	{
		.id = 0x300000003,
		.name = "dp",
		.state = "aborted",
		.n_ranks = 2,
		.arena_bytes = 402,
		.members = members,
		.n_members = RX_ARRAY_SIZE(members),
		.stalled_ns = 409,
		.reason = "a rank died (rank 1)",
		.ops_done = 410,
		.ops_queued = 411,
		.age_ns = 412,
		.n_cores = 413,
		.cores_shared = true,
		.shares = "l3",
		.tuning_epoch = 414,
		.precision = "all_reduce",
		.over_budget = true,
		.precision_ops = 415,
		.exact_bytes = 416,
		.wire_bytes = 417,
		.precision_blocks = 418,
		.saturated_blocks = 419,
		.flushed_blocks = 420,
		.special_blocks = 421,
		.sampled_blocks = 422,
		.error_ppm = 423,
		.worst_error_ppm = 424,
		.kernels = "off: no device",
	},
};

static struct rx_tuning_row rows[] = {
	{
		.coll = 1,
		.ranks = 8,
		.flat_max = 601,
		.flat_max_shared = 602,
		.chunk = 603,
		.direct_min = 0x600000004,
		.stream_min = 0x600000005,
		.flat_max_from = "a.conf:1",
		.flat_max_shared_from = "a.conf:2",
		.chunk_from = "a.conf:3",
		.direct_min_from = "a.conf:4",
		.stream_min_from = "compiled default",
		.low_precision_min = 606,
		.low_precision_min_from = "a.conf:6",
		.single_min = 607,
		.single_min_from = "b.conf:7",
		.device_flat_max = 608,
		.device_tree_min = 0x600000009,
		.device_slots_min = 610,
		.device_push_min = 0x60000000b,
		.device_flat_max_from = "c.conf:1",
		.device_tree_min_from = "c.conf:2",
		.device_slots_min_from = "c.conf:3",
		.device_push_min_from = "c.conf:4",
	},
	{
		.coll = 2,
		.ranks = 16,
		.flat_max_from = "",
		.flat_max_shared_from = "",
		.chunk_from = "",
		.direct_min_from = "",
		.stream_min_from = "",
		.low_precision_min_from = "",
		.single_min_from = "",
		.device_flat_max_from = "",
		.device_tree_min_from = "",
		.device_slots_min_from = "",
		.device_push_min_from = "",
	},
};

static struct rx_topology_object objects[] = {
	{
		.kind = "numa",
		.index = 701,
		.cpus = "0-3,8-11",
		.n_cores = 702,
		.bytes = 0x700000003,
	},
	{
		.kind = "l3",
		.index = 704,
		.cpus = "",
	},
};

static struct rx_gpu_piece pieces[] = {
	{
		.start = 0x7f0000000000,
		.bytes = 0x200000,
		.id = 801,
		.uuid = {instance, 16},
		.kind = 1,
		.handle = {instance, 5},
	},
	{
		.start = 0x7f0000200000,
		.bytes = 0x200001,
		.id = 802,
		.uuid = {instance, 16},
		.kind = 2,
	},
};

static struct rx_device_info devices[] = {
	{
		.index = 5,
		.name = "Some GPU",
		.arch = "gfx942",
		.pci = "0000:c1:00.0",
		.uuid = {instance, 16},
		.memory_bytes = 0x3000000000,
		.n_units = 304,
		.peers = 0xff,
		.state = "failed",
		.error = "it fell off",
		.n_launches = 901,
		.n_imports = 902,
		.n_proofs = 903,
		.mapped_bytes = 0x900000004,
		.n_maps = 905,
		.n_quarantined = 906,
		.copied = "constant 2",
		.n_ops = 907,
		.n_op_bytes = 1ull << 41,
		.n_failures = 908,
		.scratch_bytes = 909,
		.scratch_high_bytes = 910,
		.slab_bytes = 0x900000007,
		.slab_used_bytes = 911,
		.exchange_bytes = 911,
		.n_exchange_ops = 912,
		.direct = "busy 3",
		.n_staged_ops = 913,
	},
	{
		.index = 6,
		.name = "",
		.arch = "",
		.pci = "",
		.uuid = {instance, 16},
		.state = "",
		.error = "",
		.copied = "",
		.direct = "",
	},
};

const struct msg_sample msg_samples[] = {
	{
		.msg =
			{
				.type = RX_MSG_HELLO,
				.serial = 1000,
				.hello = {.version_min = 1,
					.version_max = 3,
					.features = 0x8000000000000001,
					.abi = 0x52434c08,
					.program = "größe",
					.sq_entries = 512,
					.pid = 4242},
			},
		.golden = "08011003188180808080808080800125084c43522a076772c3b6c39f65308004389221",
	},
	{
		.msg =
			{
				.type = RX_MSG_PING,
				.serial = 1001,
				.ping = {.token = 0xfedcba9876543210},
			},
		.golden = "0890e4d0b287d3aeeefe01",
	},
	{
		.msg =
			{
				.type = RX_MSG_UNIQUE_ID_GET,
				.serial = 1002,
			},
		.golden = "",
	},
	{
		.msg =
			{
				.type = RX_MSG_COMM_JOIN,
				.serial = 1003,
				.comm_join = {.id = {unique_id, RX_UNIQUE_ID_BYTES},
					.n_ranks = 64,
					.rank = 63,
					.form_timeout_ns = 0x6fc23ac01,
					.op_timeout_ns = 0x12a05f202,
					.name = "tp group",
					.cpus = {instance, 3},
					.precision_flags = 19,
					.precision_sample_every = 1024,
					.precision_budget_ppm = 20000,
					.precision_min_bytes = 0x700000001,
					.link_rate = 2000000000,
					.gpu = true,
					.device = {instance, 16},
					.concurrent = true},
			},
		.golden = "0a80010b30557a9fc4e90e33587da2c7ec11365b80a5caef14395e83a8cdf2173c6186"
			  "abd0f51a3f6489aed3f81d42678cb1d6fb20456a8fb4d9fe23486d92b7dc01264b7095"
			  "badf04294e7398bde2072c51769bc0e50a2f54799ec3e80d32577ca1c6eb10355a7fa4"
			  "c9ee13385d82a7ccf1163b6085aacff4193e6388add2f71c41661040183f2081d88ee1"
			  "6f2882e497d012320874702067726f75703a03a0a1a2401348800850a09c0158818080"
			  "80706080a8d6b90768017210a0a1a2a3a4a5a6a7a8a9aaabacadaeaf7801",
	},
	{
		.msg =
			{
				.type = RX_MSG_COMM_LEAVE,
				.serial = 1004,
				.comm_leave = {.member = 0x11171},
			},
		.golden = "08f1a204",
	},
	{
		.msg =
			{
				.type = RX_MSG_COMM_ABORT,
				.serial = 1005,
				.comm_abort = {.member = 0x11172, .reason = 6},
			},
		.golden = "08f2a2041006",
	},
	{
		.msg =
			{
				.type = RX_MSG_STALL_HINT,
				.serial = 1006,
				.stall_hint = {.member = 0x11173},
			},
		.golden = "08f3a204",
	},
	{
		.msg =
			{
				.type = RX_MSG_OVER_BUDGET,
				.serial = 1030,
				.over_budget = {.member = 0x11174},
			},
		.golden = "08f4a204",
	},
	{
		.msg =
			{
				.type = RX_MSG_MEM_ALLOC,
				.serial = 1007,
				.mem_alloc = {.bytes = 0x123456789abc},
			},
		.golden = "08bcb5e2b3c5c604",
	},
	{
		.msg =
			{
				.type = RX_MSG_MEM_REGISTER,
				.serial = 1008,
				.mem_register = {.bytes = 0x10000000, .offset = 8192},
			},
		.golden = "088080808001108040",
	},
	{
		.msg =
			{
				.type = RX_MSG_MEM_FREE,
				.serial = 1009,
				.mem_free = {.handle = 0xfffffffe},
			},
		.golden = "08feffffff0f",
	},
	{
		.msg =
			{
				.type = RX_MSG_MEM_IMPORT,
				.serial = 1010,
				.mem_import = {.member = 7, .region_id = 0x100000002},
			},
		.golden = "0807108280808010",
	},
	{
		.msg =
			{
				.type = RX_MSG_ADMIN_STATUS,
				.serial = 1011,
			},
		.golden = "",
	},
	{
		.msg =
			{
				.type = RX_MSG_ADMIN_SESSIONS,
				.serial = 1012,
				.admin_list = {.after = 0x300000004},
			},
		.golden = "088480808030",
	},
	{
		.msg =
			{
				.type = RX_MSG_ADMIN_COMMS,
				.serial = 1013,
				.admin_list = {.after = 0x500000006},
			},
		.golden = "088680808050",
	},
	{
		.msg =
			{
				.type = RX_MSG_ADMIN_DRAIN,
				.serial = 1014,
			},
		.golden = "",
	},
	{
		.msg =
			{
				.type = RX_MSG_ADMIN_TUNING,
				.serial = 1026,
				.admin_list = {.after = 17},
			},
		.golden = "0811",
	},
	{
		.msg =
			{
				.type = RX_MSG_ADMIN_TOPOLOGY,
				.serial = 1027,
				.admin_list = {.after = 18},
			},
		.golden = "0812",
	},
	{
		.msg =
			{
				.type = RX_MSG_OK,
				.serial = 1015,
			},
		.golden = "",
	},
	{
		.msg =
			{
				.type = RX_MSG_ERROR,
				.serial = 1016,
				.error = {.code = 4,
					.text = "rank 3 (pid 17) died",
					.ranks = 0x8000000000000008},
			},
		.golden = "0804121472616e6b203320287069642031372920646965641888808080808080808001",
	},
	{
		.msg =
			{
				.type = RX_MSG_HELLO_REPLY,
				.serial = 1017,
				.hello_reply = {.version = 1,
					.features = 2,
					.session_id = 0x700000008,
					.daemon_version = "0.1.0",
					.sq_entries = 256,
					.instance = {instance, RX_INSTANCE_BYTES},
					.max_alloc_bytes = 0x10000000000},
			},
		.golden = "080110021888808080702205302e312e302880023210a0a1a2a3a4a5a6a7a8a9aaabac"
			  "adaeaf38808080808020",
	},
	{
		.msg =
			{
				.type = RX_MSG_PONG,
				.serial = 1018,
				.pong = {.token = 0x123456789abcdef},
			},
		.golden = "08ef9bafcdf8acd19101",
	},
	{
		.msg =
			{
				.type = RX_MSG_UNIQUE_ID_REPLY,
				.serial = 1019,
				.unique_id_reply = {.id = {unique_id, RX_UNIQUE_ID_BYTES}},
			},
		.golden = "0a80010b30557a9fc4e90e33587da2c7ec11365b80a5caef14395e83a8cdf2173c6186"
			  "abd0f51a3f6489aed3f81d42678cb1d6fb20456a8fb4d9fe23486d92b7dc01264b7095"
			  "badf04294e7398bde2072c51769bc0e50a2f54799ec3e80d32577ca1c6eb10355a7fa4"
			  "c9ee13385d82a7ccf1163b6085aacff4193e6388add2f71c4166",
	},
	{
		.msg =
			{
				.type = RX_MSG_COMM_READY,
				.serial = 1020,
				.comm_ready = {.member = 9,
					.comm_id = 0x90000000a,
					.arena_bytes = 0x4000000,
					.tuning_epoch = 12},
			},
		.golden = "0809108a80808090011880808020200c",
	},
	{
		.msg =
			{
				.type = RX_MSG_MEM_REPLY,
				.serial = 1021,
				.mem_reply = {.handle = 13,
					.region_id = 0xd0000000e,
					.bytes = 8192},
			},
		.golden = "080d108e808080d001188040",
	},
	{
		.msg =
			{
				.type = RX_MSG_MEM_IMPORT_REPLY,
				.serial = 1022,
				.mem_import_reply = {.bytes = 16384, .offset = 4096},
			},
		.golden = "08808001108020",
	},
	{
		.msg =
			{
				.type = RX_MSG_ADMIN_STATUS_REPLY,
				.serial = 1023,
				.admin_status_reply = {.version = "0.1.0",
					.pid = 101,
					.uptime_ns = 0x17bfac7c01,
					.state = "serving",
					.socket = "/run/rcclx/rcclxd.sock",
					.backend = "host",
					.limits = limits,
					.n_limits = RX_ARRAY_SIZE(limits),
					.sessions_total = 103,
					.comms_total = 104,
					.ops_done = 105,
					.ops_failed = 106,
					.log_dropped = 107,
					.violations = 108,
					.reloads = 109},
			},
		.golden = "0a05302e312e3010651881f8b1fdfb02220773657276696e672a162f72756e2f726363"
			  "6c782f7263636c78642e736f636b3204686f73743a0f0a0873657373696f6e73100118"
			  "80083a140a05627974657310808080802018808080808002406748685069586a606b68"
			  "6c706d",
	},
	{
		.msg =
			{
				.type = RX_MSG_ADMIN_SESSIONS_REPLY,
				.serial = 1024,
				.admin_sessions_reply = {.sessions = sessions,
					.n_sessions = RX_ARRAY_SIZE(sessions),
					.more = true},
			},
		.golden = "0a2c08818080801010c90118ca0120cb012a06776f726b657230cc0138cd0140ce0148"
			  "cf0150d00158d10160d2010a2b08828080802010ad0218ae0220af022a056f74686572"
			  "30b00238b10240b20248b30250b40258b50260b6021001",
	},
	{
		.msg =
			{
				.type = RX_MSG_ADMIN_COMMS_REPLY,
				.serial = 1025,
				.admin_comms_reply = {.comms = comms,
					.n_comms = RX_ARRAY_SIZE(comms),
					.more = true},
			},
		.golden = "0aeb01088380808030120264701a0761626f7274656420022892033236109403189503"
			  "2096032a05616c6976653097033a1c616c6c5f726564756365206f66203820666c6f61"
			  "7433322c2073756d40980348013222080110f80318f90320fa032a046465616430fb03"
			  "3a076261727269657240fc0348013899034214612072616e6b2064696564202872616e"
			  "6b203129489a03509b03589c03609d03680172026c33789e0382010a616c6c5f726564"
			  "75636588010190019f039801a003a001a103a801a203b001a303b801a403c001a503c8"
			  "01a603d001a703d801a803e2010e6f66663a206e6f206465766963651001",
	},
	{
		.msg =
			{
				.type = RX_MSG_ADMIN_TUNING_REPLY,
				.serial = 1028,
				.admin_tuning_reply = {.epoch = 7,
					.dir = "/etc/t",
					.rows = rows,
					.n_rows = RX_ARRAY_SIZE(rows),
					.more = true},
			},
		.golden = "080712062f6574632f741ab0010801100818d90420da0428db0430848080806038858080"
			  "80604208612e636f6e663a314a08612e636f6e663a325208612e636f6e663a335a0861"
			  "2e636f6e663a346210636f6d70696c65642064656661756c7468de047208612e636f6e"
			  "663a3678df04820108622e636f6e663a37"
			  "8801e004900189808080609801e204a0018b80808060aa0108632e636f6e663a31b201"
			  "08632e636f6e663a32ba0108632e636f6e663a33c20108632e636f6e663a34"
			  "1a04080210102001",
	},
	{
		.msg =
			{
				.type = RX_MSG_ADMIN_TOPOLOGY_REPLY,
				.serial = 1029,
				.admin_topology_reply = {.n_packages = 1,
					.n_numa = 2,
					.n_l3 = 3,
					.n_l2 = 4,
					.n_cores = 5,
					.n_pus = 6,
					.objects = objects,
					.n_objects = RX_ARRAY_SIZE(objects),
					.more = true},
			},
		.golden = "0801100218032004280530063a1c0a046e756d6110bd051a08302d332c382d313120be"
			  "052883808080703a070a026c3310c0054001",
	},
	{
		.msg =
			{
				.type = RX_MSG_GPU_REGISTER,
				.serial = 1041,
				.gpu_register = {.pieces = pieces,
					.n_pieces = RX_ARRAY_SIZE(pieces),
					.sample_offset = 803,
					.sample_bytes = 804,
					.sample_seed = 0x800000005,
					.rows = {instance, 7},
					.flags = 3},
			},
		.golden =
			"0a2b088080808080e01f108080800118a1062210a0a1a2a3a4a5a6a7a8a9aaabacadae"
			"af28013205a0a1a2a3a40a24088080808180e01f108180800118a2062210a0a1a2a3a4"
			"a5a6a7a8a9aaabacadaeaf280210a30618a406208580808080012a07a0a1a2a3a4a5a63003",
	},
	{
		.msg =
			{
				.type = RX_MSG_GATES_OPEN,
				.serial = 1043,
				.gates_open = {.handle = 0x11182},
			},
		.golden = "0882a304",
	},
	{
		.msg =
			{
				.type = RX_MSG_SLAB_GET,
				.serial = 1044,
				.slab_get = {.member = 0x11183, .rank = 63},
			},
		.golden = "0883a304103f",
	},
	{
		.msg =
			{
				.type = RX_MSG_KERNELS_READY,
				.serial = 1045,
				.kernels_ready = {.member = 0x11184,
					.cell = 2047,
					.why = "cannot map"},
			},
		.golden = "0884a30410ff0f1a0a63616e6e6f74206d6170",
	},
	{
		.msg =
			{
				.type = RX_MSG_SLAB_REPLY,
				.serial = 1046,
				.slab_reply = {.start = 0x7f0000000000,
					.bytes = 0x10000000,
					.id = 1001,
					.uuid = {instance, 16},
					.handle = {unique_id, RX_GPU_HANDLE_MAX},
					.rows = {unique_id, RX_SLAB_ROWS},
					.part_offset = 4096,
					.part_bytes = 2131072,
					.max_blocks = 16},
			},
		.golden = "088080808080e01f10808080800118e9072210a0a1a2a3a4a5a6a7a8a9aaabacadaeaf"
			  "2a400b30557a9fc4e90e33587da2c7ec11365b80a5caef14395e83a8cdf2173c6186ab"
			  "d0f51a3f6489aed3f81d42678cb1d6fb20456a8fb4d9fe23486d92b7dc01263280010b"
			  "30557a9fc4e90e33587da2c7ec11365b80a5caef14395e83a8cdf2173c6186abd0f51a"
			  "3f6489aed3f81d42678cb1d6fb20456a8fb4d9fe23486d92b7dc01264b7095badf0429"
			  "4e7398bde2072c51769bc0e50a2f54799ec3e80d32577ca1c6eb10355a7fa4c9ee1338"
			  "5d82a7ccf1163b6085aacff4193e6388add2f71c416638802040808982014810",
	},
	{
		.msg =
			{
				.type = RX_MSG_GPU_REPLY,
				.serial = 1042,
				.gpu_reply = {.handle = 0x11181, .why = 3},
			},
		.golden = "0881a3041003",
	},
	{
		.msg =
			{
				.type = RX_MSG_ADMIN_DEVICES,
				.serial = 1043,
				.admin_list = {.after = 19},
			},
		.golden = "0813",
	},
	{
		.msg =
			{
				.type = RX_MSG_ADMIN_DEVICES_REPLY,
				.serial = 1044,
				.admin_devices_reply = {.state = "ready",
					.backend = "hip",
					.reason = "none",
					.devices = devices,
					.n_devices = RX_ARRAY_SIZE(devices),
					.more = true},
			},
		.golden = "0a05726561647912036869701a046e6f6e6522b30108051208536f6d65204750551a06"
			  "676678393432220c303030303a63313a30302e302a10a0a1a2a3a4a5a6a7a8a9aaabac"
			  "adaeaf3080808080800638b00240ff014a066661696c6564520b69742066656c6c206f"
			  "66665885076086076887077084808080900178890780018a078a010a636f6e7374616e"
			  "74203290018b079801808080808040a0018c07a8018d07b0018e07b801878080809001"
			  "c0018f07c8018f07d0019007da0106627573792033e0019107221408062a10a0a1a2a3"
			  "a4a5a6a7a8a9aaabacadaeaf2801",
	},
};

const size_t n_msg_samples = RX_ARRAY_SIZE(msg_samples);
