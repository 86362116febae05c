// SPDX-License-Identifier: Apache-2.0
#include "trtexec/trtexec.h"

int main(int argc, char** argv) { return lathe::trtexec::run_trtexec(argv[0], {argv + 1, argv + argc}); }
